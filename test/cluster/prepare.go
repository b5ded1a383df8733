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
)

// state is what of a cluster must stay as it is when it is started again:
// others have been given its address.
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

// prepare reads or makes everything that the processes read.
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

// once calls makes unless the file, the last that it writes, is there.
func (c *Cluster) once(file string, makes func() error) error {
	if _, err := os.Stat(c.path(file)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return makes()
}

// choosePorts picks ports for the API server and etcd, and writes them and the
// kubeconfigs that depend on them.
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
		// These two have no role of their own among the API server's.
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

// FreePort is a port on loopback that nothing listens on. It is below those
// that the system hands out by itself, so that nobody is given it before it is
// used.
func FreePort() (int, error) {
	for range 100 {
		port := 20000 + mathrand.IntN(10000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		return port, listener.Close()
	}
	return 0, errors.New("finding a free port on 127.0.0.1 between 20000 and 29999")
}

// firstAddress is what the API server's own Service gets.
func firstAddress(cidr string) netip.Addr { return netip.MustParsePrefix(cidr).Masked().Addr().Next() }
