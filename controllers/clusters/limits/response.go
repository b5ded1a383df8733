package limits

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Wrap applies the limits to all calls of a transport. Some providers have endpoints
// with a path, which is removed from the paths of requests.
func (g *Limiter) Wrap(endpoint string) func(http.RoundTripper) http.RoundTripper {
	prefix := ""
	if u, err := url.Parse(endpoint); err == nil {
		prefix = u.Path
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return &limitedTransport{limiter: g, prefix: strings.TrimSuffix(prefix, "/"), next: next}
	}
}

// limitedTransport is an http.RoundTripper.
type limitedTransport struct {
	limiter *Limiter
	prefix  string
	next    http.RoundTripper
}

// WrappedRoundTripper returns the transport to client-go.
func (t *limitedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// responseKind is the kind of response that a request expects.
type responseKind int

const (
	responseObject responseKind = iota // and all other small responses
	responseList
	responseDiscovery
	responseWatch
)

// responseKindOf returns the kind of response by the method, path and query of a
// request.
func responseKindOf(method, path, watch string) responseKind {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	depth := 0
	switch parts[0] {
	case "api":
		depth = 2
	case "apis":
		depth = 3
	}
	after := len(parts) - depth
	switch {
	case depth == 0 || method != http.MethodGet:
		return responseObject
	case after <= 0:
		return responseDiscovery
	case watch != "" && watch != "0" && watch != "false":
		return responseWatch
	case after == 1, after == 3 && parts[depth] == "namespaces":
		return responseList
	}
	return responseObject
}

// tooLargeAllowed is the context key of requests that are sent again with fewer
// objects when the response is too large. Such a response exceeds no limit.
type tooLargeAllowed struct{}

// exchange is one HTTP request and its response.
type exchange struct {
	limiter         *Limiter
	kind            responseKind
	ctx             context.Context //nolint:containedctx // of the request
	tooLargeAllowed bool
	turn            *turn
	endTurn         bool // with the response
	admitted        bool // as a large response
	timer           *time.Timer
	started         atomic.Bool

	body    io.ReadCloser
	max     int64 // bytes of the response
	read    int64
	counter jsonCounter
	event   int64 // bytes of the current event
}

// RoundTrip implements http.RoundTripper.
func (t *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.limiter.backoffError(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	c := &exchange{limiter: t.limiter, ctx: ctx, kind: responseKindOf(r.Method, strings.TrimPrefix(r.URL.Path, t.prefix), r.URL.Query().Get("watch"))}
	c.tooLargeAllowed, _ = ctx.Value(tooLargeAllowed{}).(bool)
	if c.turn, _ = ctx.Value(turnKey{}).(*turn); c.turn == nil {
		c.turn, c.endTurn = &turn{}, true
	}
	t.limiter.mu.Lock()
	t.limiter.open[c] = cancel
	t.limiter.mu.Unlock()
	if c.kind != responseWatch {
		c.timer = time.AfterFunc(t.limiter.limits.ResponseTime, c.onTimeout)
	}
	r = r.Clone(ctx)
	acceptJSONOnly(r.Header)
	response, err := t.next.RoundTrip(r)
	if err != nil {
		err = c.cause(err)
		c.finish()
		return nil, err
	}
	c.started.Store(true)
	c.body, c.max = response.Body, t.limiter.limits.maxBytes(c.kind, response)
	response.Body = c
	if c.kind == responseDiscovery && response.StatusCode == http.StatusOK {
		return c.checkDiscovery(response)
	}
	return response, nil
}

// maxBytes returns the maximal size of a response.
func (l Limits) maxBytes(a responseKind, response *http.Response) int64 {
	switch {
	case a == responseWatch && response.StatusCode == http.StatusOK:
		return 0 // each event is measured by itself
	case response.StatusCode >= http.StatusBadRequest, !strings.Contains(response.Header.Get("Content-Type"), "json"):
		return errorBytes
	case a == responseList:
		return l.ResponseBytes
	case a == responseDiscovery:
		return min(l.ResponseBytes, 4*objectBytes)
	}
	return min(l.ResponseBytes, objectBytes)
}

// onTimeout ends a call that takes too long. A target that has begun its response
// exceeds a limit; another one is unreachable.
func (c *exchange) onTimeout() {
	if c.started.Load() {
		_ = c.limiter.Exceed("time of one response: %s", c.limiter.limits.ResponseTime) // this also ends the read
		return
	}
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	if end := c.limiter.open[c]; end != nil {
		end(context.DeadlineExceeded)
	}
}

// cause returns the exceeded limit as the error of the call that it ended.
func (c *exchange) cause(err error) error {
	if cause := context.Cause(c.ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func (c *exchange) finish() {
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.endTurn {
		c.turn.end()
	}
	c.limiter.mu.Lock()
	cancel := c.limiter.open[c]
	delete(c.limiter.open, c)
	c.limiter.mu.Unlock()
	if cancel != nil {
		cancel(nil)
	}
}

// Close implements io.Closer for the body of the response.
func (c *exchange) Close() error {
	c.finish()
	return c.body.Close()
}

// Read implements io.Reader for the body of the response.
func (c *exchange) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	if exceeded := c.countBytes(p[:n]); exceeded != nil {
		return 0, exceeded
	}
	if err != nil && err != io.EOF {
		return n, c.cause(err)
	}
	return n, err
}

// valueOverhead estimates the memory that a JSON value takes beside its text.
const valueOverhead = 48

// countBytes counts the bytes and values of a response.
func (c *exchange) countBytes(data []byte) error {
	values, ended := c.counter.add(data)
	size := int64(len(data))
	c.read += size
	if c.max == 0 {
		c.event += size
		if c.event > objectBytes {
			return c.limiter.Exceed("bytes of one watch event: %d", objectBytes)
		}
		if ended {
			c.event = 0
		}
		if cost := len(data) + valueOverhead*values; cost > 0 && !c.limiter.bytes.AllowN(time.Now(), cost) {
			return c.limiter.Exceed("bytes of watch events per second: %d", watchBytesPerSecond)
		}
		return nil
	}
	const expansion = 4 // of text that is decoded
	decoded := c.read + valueOverhead*c.counter.values
	switch {
	case c.read <= c.max && decoded <= largeResponse:
		return nil
	case c.read <= c.max && decoded <= expansion*c.max:
		return c.awaitTurn()
	}
	if c.tooLargeAllowed {
		return errPageTooLarge
	}
	return c.limiter.Exceed("bytes of one response: %d", c.max)
}

// awaitTurn waits until a large response may be read. The target is not the cause of
// that delay, so its time begins again, but only once: a target that then sends byte by
// byte would otherwise keep its turn.
func (c *exchange) awaitTurn() error {
	if c.admitted {
		return nil
	}
	c.timer.Stop()
	defer c.timer.Reset(c.limiter.limits.ResponseTime)
	err := c.turn.begin(c.ctx, c.limiter.budget.largeResponses, !c.tooLargeAllowed)
	c.admitted = err == nil
	return c.cause(err)
}

// checkDiscovery reads a discovery document, and counts its entries.
func (c *exchange) checkDiscovery(response *http.Response) (*http.Response, error) {
	data, err := io.ReadAll(c)
	_ = c.Close() // the response was read to its end, or failed
	if err != nil {
		return nil, err
	}
	if exceeded := c.limiter.checkDiscovery(data); exceeded != nil {
		return nil, exceeded
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response, nil
}

// checkDiscovery counts the entries of a discovery document, aggregated or not.
func (g *Limiter) checkDiscovery(data []byte) error {
	type version struct {
		Resources []struct{} `json:"resources"`
	}
	type group struct {
		Versions []version `json:"versions"`
	}
	var document struct {
		Groups    []group    `json:"groups"`
		Items     []group    `json:"items"`
		Resources []struct{} `json:"resources"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil //nolint:nilerr // the client says so better
	}
	entries := len(document.Resources)
	for _, found := range append(document.Groups, document.Items...) {
		entries += 1 + len(found.Versions)
		if len(found.Versions) > versionsPerGroup {
			return g.Exceed("versions of one API group: %d", versionsPerGroup)
		}
		for _, v := range found.Versions {
			entries += len(v.Resources)
		}
	}
	if entries > discoveryEntries {
		return g.Exceed("API groups, versions and resources: %d", discoveryEntries)
	}
	return nil
}

// acceptJSONOnly requests JSON only, because JSON can be measured before it is decoded.
func acceptJSONOnly(header http.Header) {
	var kept []string
	for _, accepted := range strings.Split(header.Get("Accept"), ",") {
		if strings.HasPrefix(strings.TrimSpace(accepted), "application/json") {
			kept = append(kept, strings.TrimSpace(accepted))
		}
	}
	if len(kept) > 0 {
		header.Set("Accept", strings.Join(kept, ","))
	}
}

// jsonCounter counts the values in a JSON stream.
type jsonCounter struct {
	values         int64
	depth          int
	quoted, escape bool
}

// add returns the number of values that began, and whether a whole document ended.
func (m *jsonCounter) add(data []byte) (values int, ended bool) {
	for _, b := range data {
		switch {
		case m.escape:
			m.escape = false
		case m.quoted:
			m.escape, m.quoted = b == '\\', b != '"'
		case b == '"':
			m.quoted = true
		case b == ',':
			values++
		case b == '{', b == '[':
			values++
			m.depth++
		case b == '}', b == ']':
			m.depth--
			ended = ended || m.depth == 0
		}
	}
	m.values += int64(values)
	return values, ended
}
