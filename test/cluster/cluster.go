// Package cluster starts real Kubernetes clusters on loopback: etcd, the API server,
// the controller manager with every stock controller, the scheduler, a cloud that
// provides load balancers, and kwok, which simulates the nodes.
//
// The directory of a cluster contains its keys, data, logs, and a record of each
// process. A start in an existing directory starts the missing processes, so that `make
// up` can be repeated.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Component is one process of a cluster.
type Component string

// The components of a cluster, in the order they start.
const (
	Etcd                   Component = "etcd"
	APIServer              Component = "kube-apiserver"
	ControllerManager      Component = "kube-controller-manager"
	Scheduler              Component = "kube-scheduler"
	CloudControllerManager Component = "cloud-controller-manager"
	Kwok                   Component = "kwok"
)

// Everything is a whole cluster.
var Everything = []Component{Etcd, APIServer, ControllerManager, Scheduler, CloudControllerManager, Kwok}

// ControlPlane is a cluster without controllers.
var ControlPlane = []Component{Etcd, APIServer}

// The address ranges of load balancers. Both are reserved for documentation, so that an
// address identifies the cluster that gave it, and reaches no host.
const (
	TargetLoadBalancers = "203.0.113.0/24"
	HubLoadBalancers    = "198.51.100.0/24"
)

// Options of a cluster. The zero value is a complete cluster with two nodes that ends
// with the calling process.
type Options struct {
	// Name is the name of the cluster, its context and its nodes. Default: "test".
	Name string
	// Dir is the directory of the cluster. Default: a temporary directory, which
	// Shutdown removes.
	Dir string
	// Bin is the directory of the Kubernetes programs. Default: bin in the repository's
	// root.
	Bin string
	// Nodes is the number of simulated nodes. Default: 2; -1 for none.
	Nodes int
	// LoadBalancerRange is the address range of load balancers. Default:
	// TargetLoadBalancers.
	LoadBalancerRange string
	// ServiceCIDR is the address range of Services. Default: another 10.x.0.0/16 for
	// each cluster of this process.
	ServiceCIDR string
	// Components are the components to start. Default: Everything.
	Components []Component
	// ExtraAPIServerArgs are additional arguments of the API server.
	ExtraAPIServerArgs []string
	// Detach lets the cluster outlive the process that starts it.
	Detach bool
	// Progress is called with steps that take long.
	Progress func(step string)
}

// Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	opts  Options
	state state
	ca    *authority
	temp  bool // Shutdown removes Dir

	mu        sync.Mutex
	processes map[Component]*Process
	admin     *User
}

// serviceRanges counts the clusters without ServiceCIDR.
var serviceRanges atomic.Uint32

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = "test"
	}
	if o.Bin == "" {
		root, err := RepoRoot()
		if err != nil {
			return o, err
		}
		o.Bin = filepath.Join(root, "bin")
	}
	if o.Nodes == 0 {
		o.Nodes = 2
	}
	if o.LoadBalancerRange == "" {
		o.LoadBalancerRange = TargetLoadBalancers
	}
	if o.ServiceCIDR == "" {
		o.ServiceCIDR = fmt.Sprintf("10.%d.0.0/16", 100+serviceRanges.Add(1)%100)
	}
	if _, err := netip.ParsePrefix(o.ServiceCIDR); err != nil {
		return o, fmt.Errorf("reading the Service CIDR: %w", err)
	}
	if len(o.Components) == 0 {
		o.Components = Everything
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o, nil
}

// Start starts a cluster, or the missing components of the cluster in opts.Dir. It
// returns when Pods can be created in the default namespace.
func Start(ctx context.Context, opts Options) (_ *Cluster, err error) {
	if opts, err = opts.withDefaults(); err != nil {
		return nil, err
	}
	for _, component := range opts.Components {
		if _, err := os.Stat(filepath.Join(opts.Bin, string(component))); err != nil {
			return nil, fmt.Errorf("no %s in %s: run `make kube` first", component, opts.Bin)
		}
	}

	c := &Cluster{opts: opts, processes: map[Component]*Process{}}
	if opts.Dir == "" {
		if c.opts.Dir, err = os.MkdirTemp("", "portico-"+opts.Name+"-"); err != nil {
			return nil, err
		}
		c.temp = true
	}
	if c.opts.Dir, err = filepath.Abs(c.opts.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting cluster %s: %w", opts.Name, err), c.abandon())
		}
	}()

	if err := c.prepare(); err != nil {
		return nil, err
	}
	if err := c.startControlPlane(ctx); err != nil {
		return nil, err
	}
	for _, component := range opts.Components {
		if component == Etcd || component == APIServer {
			continue
		}
		if err := c.ensure(component); err != nil {
			return nil, err
		}
	}
	if err := c.settle(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// abandon ends a cluster that did not start. The processes of a detached cluster remain
// for the next attempt. The logs of any cluster remain for the reader.
func (c *Cluster) abandon() error {
	if c.opts.Detach {
		return nil
	}
	return c.killAll()
}

// Name returns the name of the cluster.
func (c *Cluster) Name() string { return c.opts.Name }

// Dir returns the directory of the cluster.
func (c *Cluster) Dir() string { return c.opts.Dir }

// ServiceCIDR returns the address range of the cluster's Services.
func (c *Cluster) ServiceCIDR() netip.Prefix { return netip.MustParsePrefix(c.state.ServiceCIDR) }

// Config returns a client configuration of an administrator (system:masters).
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin.Config) }

// Kubeconfig returns the path of an administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.path("admin.kubeconfig") }

// LogFile returns the path of a component's log.
func (c *Cluster) LogFile(component Component) string { return c.path(string(component) + ".log") }

func (c *Cluster) path(name string) string { return filepath.Join(c.opts.Dir, name) }

// Stop ends a component with SIGTERM, and waits until it has ended.
func (c *Cluster) Stop(component Component) error {
	return c.signal(component, (*Process).Stop)
}

// Kill ends a component with SIGKILL, and waits until it has ended.
func (c *Cluster) Kill(component Component) error {
	return c.signal(component, (*Process).Kill)
}

// Pause suspends a component: its connections remain open, and get no response.
func (c *Cluster) Pause(component Component) error {
	return c.signal(component, (*Process).Pause)
}

// Resume continues a paused component.
func (c *Cluster) Resume(component Component) error {
	return c.signal(component, (*Process).Resume)
}

// Running tells whether a component's process exists, paused or not.
func (c *Cluster) Running(component Component) bool {
	process := c.process(component)
	return process != nil && process.Alive()
}

// Restart starts a component again on the same address. It ends the component first if
// it runs. For the API server it returns when the API server is ready.
func (c *Cluster) Restart(ctx context.Context, component Component) error {
	if c.Running(component) {
		if err := c.Stop(component); err != nil {
			return err
		}
	}
	if err := c.ensure(component); err != nil {
		return err
	}
	if component == Etcd || component == APIServer {
		return c.waitReady(ctx)
	}
	return nil
}

func (c *Cluster) process(component Component) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[component]
}

func (c *Cluster) signal(component Component, send func(*Process) error) error {
	process := c.process(component)
	if process == nil {
		return fmt.Errorf("cluster %s has no %s", c.opts.Name, component)
	}
	return send(process)
}

// Shutdown ends every process, and removes a temporary directory.
func (c *Cluster) Shutdown() error {
	err := c.killAll()
	if c.temp {
		err = errors.Join(err, os.RemoveAll(c.opts.Dir))
	}
	return err
}

func (c *Cluster) killAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, component := range slices.Backward(Everything) {
		if process := c.processes[component]; process != nil {
			errs = append(errs, process.Kill())
		}
	}
	return errors.Join(errs...)
}

// Shutdown ends every process of the cluster in a directory, also those of other
// programs.
func Shutdown(dir string) error {
	var errs []error
	for _, component := range slices.Backward(Everything) {
		process, err := Attach(dir, string(component))
		if err != nil {
			errs = append(errs, err)
		} else if process != nil {
			errs = append(errs, process.Kill())
		}
	}
	return errors.Join(errs...)
}
