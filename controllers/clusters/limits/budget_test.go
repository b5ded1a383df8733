package limits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// TestTotalCacheBytes: when the caches of all targets together are too large, only the
// target with the largest caches exceeds its limit.
func TestTotalCacheBytes(t *testing.T) {
	limits := Limits{CacheBytes: 100 << 20, TotalCacheBytes: 100 << 20}
	budget := NewBudget(limits)
	small, large, other := NewLimiter(limits, budget), NewLimiter(limits, budget), NewLimiter(limits, budget)
	budget.setCached(small, 10<<20)
	budget.setCached(large, 60<<20)
	budget.setCached(other, 30<<20)
	for name, g := range map[string]*Limiter{"small": small, "large": large, "other": other} {
		if err := g.backoffError(); err != nil {
			t.Errorf("at the limit, target %s is left alone: %v", name, err)
		}
	}
	budget.setCached(small, 11<<20)
	budget.setCached(small, 12<<20) // before the largest caches are dropped
	if large.backoffError() == nil {
		t.Error("past the limit, the target with the largest caches goes on")
	}
	budget.setCached(large, 0)
	budget.setCached(other, 80<<20)
	for name, g := range map[string]*Limiter{"small": small, "other": other} {
		if err := g.backoffError(); err != nil {
			t.Errorf("target %s is left alone, although another has more, or had: %v", name, err)
		}
	}
}

// pipes is a listener with connections in memory. The time of a synctest bubble advances
// while goroutines wait for such connections.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// transportTo returns a transport to a server with a handler.
func transportTo(t *testing.T, handler http.HandlerFunc) http.RoundTripper {
	listener := make(pipes)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		listener <- server
		return client, nil
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close() // no request is open
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return transport
}

// TestLargeResponses: large responses wait for their turn. Small responses do not wait.
// A page that would wait is requested again with fewer objects. No target exceeds a
// limit by the delay.
func TestLargeResponses(t *testing.T) { synctest.Test(t, testLargeResponses) }

func testLargeResponses(t *testing.T) {
	const endpoint = "http://target.example.org"
	transport := transportTo(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		size := 100
		if r.URL.Query().Get("large") != "" {
			size = largeResponse + 1<<20
		}
		_, _ = fmt.Fprintf(w, `{"items":[%q]}`, strings.Repeat("x", size))
	})
	limits := Limits{ResponseBytes: 4 * largeResponse, ResponseTime: 2 * time.Second}
	budget := NewBudget(limits)
	g := NewLimiter(limits, budget)
	client := &http.Client{Transport: g.Wrap(endpoint)(transport)}
	read := func(ctx context.Context, query string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/api/v1/configmaps"+query, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.CopyBuffer(io.Discard, response.Body, make([]byte, 1<<20))
		return err
	}

	turns := make([]*turn, maxLargeResponses)
	for i := range turns {
		turns[i] = &turn{}
		if err := turns[i].begin(t.Context(), budget.largeResponses, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := read(t.Context(), ""); err != nil {
		t.Errorf("a small response waits for large ones: %v", err)
	}
	if err := read(context.WithValue(t.Context(), tooLargeAllowed{}, true), "?large=1"); !errors.Is(err, errPageTooLarge) {
		t.Errorf("a large page, which may be smaller, is read although others have their turn: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- read(t.Context(), "?large=1") }()
	select {
	case err := <-waiting:
		t.Errorf("a large response is read although others have their turn: %v", err)
	case <-time.After(2 * limits.ResponseTime):
	}
	turns[0].end()
	if err := <-waiting; err != nil {
		t.Errorf("a large response that had to wait fails: %v", err)
	}
	if err := g.backoffError(); err != nil {
		t.Errorf("the target is blamed for the delay: %v", err)
	}
	turns[1].end()
	if !budget.largeResponses.TryAcquire(maxLargeResponses) {
		t.Error("a turn did not end with its response")
	}
}

// TestSlowLargeResponse: a large response that is then sent byte by byte has no more time
// than another one, and loses its turn.
func TestSlowLargeResponse(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"items":[%q`, strings.Repeat("x", largeResponse+1<<20))
		for {
			select {
			case <-ended:
				return
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
			}
		}
	}))
	defer server.Close()
	limits := Limits{ResponseBytes: 4 * largeResponse, ResponseTime: time.Second}
	budget := NewBudget(limits)
	g := NewLimiter(limits, budget)
	client := &http.Client{Transport: g.Wrap(server.URL)(http.DefaultTransport)}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/configmaps", nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		response, err := client.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		failed <- err
	}()
	select {
	case err := <-failed:
		if err == nil || g.backoffError() == nil {
			t.Errorf("the target exceeds no limit: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a response that never ends is read for ever")
	}
	if !budget.largeResponses.TryAcquire(maxLargeResponses) {
		t.Error("the response keeps its turn")
	}
}

// TestTurnOfList: the turn of a page lasts until the page is decoded.
func TestTurnOfList(t *testing.T) {
	turns := semaphore.NewWeighted(1)
	ctx, end := withTurn(t.Context())
	mine, ok := ctx.Value(turnKey{}).(*turn)
	if !ok {
		t.Fatal("the context has no turn")
	}
	for range 2 { // a response asks at each read
		if err := mine.begin(ctx, turns, false); err != nil {
			t.Fatal(err)
		}
	}
	if turns.TryAcquire(1) {
		t.Error("the turn is free while the page is decoded")
	}
	end()
	end()
	if !turns.TryAcquire(1) {
		t.Error("the turn is not free after the page is decoded")
	}
}
