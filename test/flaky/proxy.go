// Package flaky simulates a bad network between Portico and an API server.
package flaky

import (
	"io"
	"net"
	"sync"
)

// Mode is the behaviour of a proxy.
type Mode int

// The modes of a proxy.
const (
	// Through forwards all bytes.
	Through Mode = iota
	// Hanging accepts connections, and sends nothing.
	Hanging
	// Refusing closes connections at once.
	Refusing
)

// Proxy is a proxy for a server.
type Proxy struct {
	listener net.Listener
	server   string

	mu   sync.Mutex
	mode Mode
	open []net.Conn
}

// Before starts a proxy for a server, on loopback.
func Before(server string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, server: server}
	go p.serve()
	return p, nil
}

// Address returns the address of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Turn changes the mode, and closes the open connections.
func (p *Proxy) Turn(to Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = to
	for _, conn := range p.open {
		_ = conn.Close() // it may be closed already
	}
	p.open = nil
}

// Close closes the proxy and all connections.
func (p *Proxy) Close() {
	_ = p.listener.Close() // no caller needs the error
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
			_ = conn.Close() // this mode does nothing else
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
		_ = conn.Close() // like a refused connection
		return
	}
	p.open = append(p.open, conn, server)
	for _, pair := range [][2]net.Conn{{conn, server}, {server, conn}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1]) // it ends when either side closes
			_, _ = pair[0].Close(), pair[1].Close()
		}()
	}
}
