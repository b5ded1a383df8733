package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
)

// state is the part of a cluster that must not change at the next start, because its
// address is stored elsewhere.
type state struct {
	ServerPort  int    `json:"serverPort"`
	EtcdPort    int    `json:"etcdPort"`
	ServiceCIDR string `json:"serviceCIDR"`
}

//go:embed audit-policy.yaml
var auditPolicy []byte

//go:embed kwok.yaml
var kwokConfig []byte

const stateFile = "cluster.json"

// prepare reads or creates the files of the processes.
func (c *Cluster) prepare() error {
	if err := os.MkdirAll(c.opts.Dir, 0o700); err != nil {
		return err
	}
	data, err := os.ReadFile(c.path(stateFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.state.ServiceCIDR = c.opts.ServiceCIDR
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(data, &c.state); err != nil {
			return fmt.Errorf("reading %s: %w", c.path(stateFile), err)
		}
	}
	for _, component := range c.opts.Components {
		process, err := Attach(c.opts.Dir, string(component))
		if err != nil {
			return err
		}
		if process != nil {
			c.processes[component] = process
		}
	}

	if err := errors.Join(
		os.WriteFile(c.path("audit-policy.yaml"), auditPolicy, 0o600),
		os.WriteFile(c.path("kwok.yaml"), kwokConfig, 0o600),
	); err != nil {
		return err
	}
	if c.ca, err = loadAuthority("kubernetes", c.path("ca.crt"), c.path("ca.key")); err != nil {
		return err
	}
	front, err := loadAuthority("front-proxy-ca", c.path("front-proxy-ca.crt"), c.path("front-proxy-ca.key"))
	if err != nil {
		return err
	}
	return c.once("apiserver.crt", func() error {
		serverCert, serverKey, err := c.ca.server(
			[]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"},
			net.IPv4(127, 0, 0, 1), net.IP(firstAddress(c.state.ServiceCIDR).AsSlice()))
		if err != nil {
			return err
		}
		frontCert, frontKey, err := front.client("front-proxy-client")
		if err != nil {
			return err
		}
		tokenKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		return errors.Join(
			writeKey(c.path("service-accounts.key"), tokenKey),
			os.WriteFile(c.path("front-proxy.crt"), frontCert, 0o600),
			os.WriteFile(c.path("front-proxy.key"), frontKey, 0o600),
			os.WriteFile(c.path("apiserver.key"), serverKey, 0o600),
			os.WriteFile(c.path("apiserver.crt"), serverCert, 0o600),
		)
	})
}

// once calls makes unless the file exists. makes writes this file last.
func (c *Cluster) once(file string, makes func() error) error {
	if _, err := os.Stat(c.path(file)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return makes()
}

// choosePorts selects ports for the API server and etcd. It writes them, and the
// kubeconfigs that contain them.
func (c *Cluster) choosePorts() (err error) {
	if c.state.EtcdPort, err = FreePort(); err != nil {
		return err
	}
	if c.state.ServerPort, err = FreePort(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(c.state, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.path(stateFile), data, 0o600)
}

func (c *Cluster) writeKubeconfigs() (err error) {
	if c.admin, err = c.writeKubeconfig("admin.kubeconfig", c.opts.Name+"-admin", "system:masters"); err != nil {
		return err
	}
	for component, user := range map[Component]struct{ name, group string }{
		ControllerManager: {"system:kube-controller-manager", ""},
		Scheduler:         {"system:kube-scheduler", ""},
		// The API server has no roles for these two.
		CloudControllerManager: {"system:cloud-controller-manager", "system:masters"},
		Kwok:                   {"system:kwok", "system:masters"},
	} {
		var groups []string
		if user.group != "" {
			groups = []string{user.group}
		}
		if _, err := c.writeKubeconfig(string(component)+".kubeconfig", user.name, groups...); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) server() string { return fmt.Sprintf("https://127.0.0.1:%d", c.state.ServerPort) }

// FreePort returns a free TCP port on loopback. The port is below the range of ports that
// the system assigns, so that no other program gets it before its use. The UDP port of
// the same number stays open until this process ends: other processes that call FreePort
// do not get the port, even while the server that uses it is stopped.
func FreePort() (int, error) {
	for range 100 {
		port := 20000 + mathrand.IntN(10000)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		reservation, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			_ = reservation.Close()
			continue
		}
		reservations.Lock()
		reservations.held = append(reservations.held, reservation) // else it is closed when it is collected
		reservations.Unlock()
		return port, listener.Close()
	}
	return 0, errors.New("finding a free port on 127.0.0.1 between 20000 and 29999")
}

// reservations are the UDP ports that this process holds for FreePort.
var reservations struct {
	sync.Mutex
	held []net.PacketConn
}

// firstAddress returns the address of the API server's own Service.
func firstAddress(cidr string) netip.Addr { return netip.MustParsePrefix(cidr).Masked().Addr().Next() }
