// Package flaky stands in the way to an API server, as a bad network does.
package flaky

import (
	"io"
	"net"
	"sync"
)

// Mode is how a proxy treats connections.
type Mode int

// The ways of a proxy.
const (
	// Through lets everything pass.
	Through Mode = iota
	// Hanging accepts, and says nothing.
	Hanging
	// Refusing closes at once.
	Refusing
)

// Proxy stands before a server.
type Proxy struct {
	listener net.Listener
	server   string

	mu   sync.Mutex
	mode Mode
	open []net.Conn
}

// Before starts a proxy before a server, on loopback.
func Before(server string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, server: server}
	go p.serve()
	return p, nil
}

// Address is where it listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Turn changes how connections are treated, and ends those that are open.
func (p *Proxy) Turn(to Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = to
	for _, conn := range p.open {
		_ = conn.Close() // may be closed already
	}
	p.open = nil
}

// Close ends it, and all connections.
func (p *Proxy) Close() {
	_ = p.listener.Close() // nobody waits for it
	p.Turn(Refusing)
}

func (p *Proxy) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		switch p.mode {
		case Refusing:
			_ = conn.Close() // that is all there is to it
		case Hanging:
			p.open = append(p.open, conn)
		case Through:
			p.forward(conn)
		}
		p.mu.Unlock()
	}
}

func (p *Proxy) forward(conn net.Conn) {
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
