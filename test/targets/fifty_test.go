package targets

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// way is how a proxy treats connections.
type way int

const (
	through  way = iota
	hanging      // accepts, and says nothing
	refusing     // closes at once
)

// proxy stands before the API server, in the way of one target.
type proxy struct {
	listener net.Listener
	server   string

	mu   sync.Mutex
	way  way
	open []net.Conn
}

// before starts a proxy before a server, until the test ends.
func before(t testing.TB, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{listener: listener, server: server}
	go p.serve()
	t.Cleanup(func() {
		_ = listener.Close() // nobody waits for it
		p.turn(refusing)
	})
	return p
}

// turn changes how connections are treated, and ends those that are open.
func (p *proxy) turn(to way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.way = to
	for _, conn := range p.open {
		_ = conn.Close() // may be closed already
	}
	p.open = nil
}

func (p *proxy) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		switch p.way {
		case refusing:
			_ = conn.Close() // that is all there is to it
		case hanging:
			p.open = append(p.open, conn)
		case through:
			p.forward(conn)
		}
		p.mu.Unlock()
	}
}

func (p *proxy) forward(conn net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = conn.Close() // as good as refused
		return
	}
	p.open = append(p.open, conn, server)
	for _, pair := range [][2]net.Conn{{conn, server}, {server, conn}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1]) // ends when either side does
			_, _ = pair[0].Close(), pair[1].Close()
		}()
	}
}

// TestFiftyTargets publishes fifty, each with a user of its own, of which five
// hang, five refuse and five come and go: the others work all the while, and
// those work once they can.
func TestFiftyTargets(t *testing.T) {
	w := start(t)
	namespace := w.namespace(t, "fifty")
	address, err := url.Parse(w.config.Host)
	must(t, err)
	const fifty, bad = 50, 15
	name := func(i int) string { return fmt.Sprintf("target-%02d", i) }
	proxies := make([]*proxy, bad)
	for i := range fifty {
		data := w.connection(w.account(t, namespace, name(i), everything...))
		if i < bad {
			proxies[i] = before(t, address.Host)
			data[v1alpha1.SecretEndpoint] = []byte("https://" + proxies[i].listener.Addr().String())
			switch {
			case i < 5:
				proxies[i].turn(hanging)
			case i < 10:
				proxies[i].turn(refusing)
			}
		}
		w.publish(t, namespace, name(i), data)
	}
	flapping := make(chan struct{})
	var flaps sync.WaitGroup
	flaps.Go(func() {
		ticks := time.NewTicker(300 * time.Millisecond)
		defer ticks.Stop()
		for turn := 0; ; turn++ {
			select {
			case <-flapping:
				return
			case <-ticks.C:
			}
			for _, p := range proxies[10:] {
				p.turn([]way{refusing, through, hanging, through}[turn%4])
			}
		}
	})
	for i := range fifty {
		w.place(t, namespace, name(i), name(i), configMap("on-"+name(i), "web", "wanted"))
	}
	for i := bad; i < fifty; i++ {
		w.synced(t, namespace, name(i), v1alpha1.ReasonApplied, nil)
	}
	for i := range 10 {
		w.reachable(t, namespace, name(i), metav1.ConditionFalse)
	}
	close(flapping)
	flaps.Wait()
	for _, p := range proxies {
		p.turn(through)
	}
	for i := range bad {
		w.reachable(t, namespace, name(i), metav1.ConditionTrue)
		w.synced(t, namespace, name(i), v1alpha1.ReasonApplied, nil)
	}
}
