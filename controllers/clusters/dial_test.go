package clusters

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/test/hostile"
)

// rebinding is a name server whose answer changes.
type rebinding struct{ address atomic.Value }

func (r *rebinding) turn(address string) { r.address.Store(netip.MustParseAddr(address)) }

// resolver returns a resolver that uses the name server, over a pipe.
func (r *rebinding) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go r.serve(server)
		return client, nil
	}}
}

// serve answers queries for A records. Each message begins with its length.
func (r *rebinding) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		size := make([]byte, 2)
		if _, err := conn.Read(size); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := conn.Read(query); err != nil {
			return
		}
		end := 12
		for query[end] != 0 {
			end += int(query[end]) + 1
		}
		end += 5 // the root, the type and the class
		answer := append([]byte{}, query[:end]...)
		answer[2], answer[3] = 0x81, 0x80
		clear(answer[6:12])
		if address, _ := r.address.Load().(netip.Addr); query[end-3] == 1 && address.Is4() {
			answer[7] = 1
			answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
			answer = append(answer, address.AsSlice()...)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// TestRebinding: the name of an endpoint resolves to a forbidden address after its
// publication.
func TestRebinding(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	_, port, _ := net.SplitHostPort(server.Addr().String())
	endpoint := "rebound.example.org:" + port

	dns := &rebinding{}
	open := func(a credentials.AddressRules) error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		conn, err := dialerFor("https://"+endpoint, a, dns.resolver())(ctx, "tcp", endpoint)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	refused := func(err error) bool {
		var refused *AddressRefused
		return errors.As(err, &refused)
	}
	// 192.0.2.0/24 is reserved for documentation, so no host answers.
	dns.turn("192.0.2.1")
	if err := open(credentials.AddressRules{}); err == nil || refused(err) {
		t.Errorf("an ordinary address: %v", err)
	}
	for _, local := range []string{"127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1"} {
		dns.turn(local)
		if err := open(credentials.AddressRules{}); !refused(err) {
			t.Errorf("%s: %v", local, err)
		}
	}
	dns.turn("127.0.0.1")
	if err := open(credentials.AddressRules{AllowLocal: true}); err != nil {
		t.Errorf("refused although it is allowed: %v", err)
	}
	hub := credentials.AddressRules{HubHosts: []string{"192.0.2.1"}}
	dns.turn("192.0.2.1")
	if err := open(hub); !refused(err) {
		t.Errorf("the hub's address: %v", err)
	}
	hub.Hub = true
	if err := open(hub); refused(err) {
		t.Errorf("a connection that names the hub: %v", err)
	}
	// The hub's own address may be a local address or a name.
	dns.turn("127.0.0.1")
	if err := open(credentials.AddressRules{Hub: true, HubHosts: []string{"hub.example.org"}}); err != nil {
		t.Errorf("the hub on Portico's own machine: %v", err)
	}
	if err := open(credentials.AddressRules{Hub: true}); !refused(err) {
		t.Errorf("a connection that names the hub leads elsewhere: %v", err)
	}
}

// TestReboundTarget changes the address of a published target before the next
// connection. The name server and the connections are real.
func TestReboundTarget(t *testing.T) {
	server := hostile.Start()
	defer server.Close()
	secret := server.Secret()
	secret["endpoint"] = []byte(strings.Replace(server.URL(), "127.0.0.1", "example.com", 1)) // a name of httptest's certificate
	connectionConfig, problems := NewConnectionConfig(&v1alpha1.KubernetesTarget{}, secret, credentials.Rules{})
	if problems != nil {
		t.Fatal(problems.ToAggregate())
	}
	dns := &rebinding{}
	dns.turn("127.0.0.1")
	c := New(Options{Timeout: time.Second, ProbeInterval: 50 * time.Millisecond, Resolver: dns.resolver()})
	key := name("eu-1")
	if err := c.Connect(t.Context(), key, connectionConfig); err != nil {
		t.Fatal(err)
	}
	defer c.Close(key)
	connection, err := c.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the address to be refused", func() (bool, any) {
		state := connection.State()
		return state.Reachable == metav1.ConditionFalse && state.Reason == v1alpha1.ReasonAddressRefused, state
	})
	if requests := server.Requests(); requests > 0 {
		t.Errorf("%d requests reached Portico's own machine", requests)
	}
}
