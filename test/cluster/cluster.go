// Package cluster starts real Kubernetes clusters on loopback: etcd, the API
// server, the controller manager with every stock controller, the scheduler, a
// cloud that gives load balancers, and kwok to play the nodes.
//
// A cluster keeps everything it is in one directory: keys, data, logs, and a
// record of each process. Starting in a directory that has some of it brings up
// what is missing, so that `make up` can be run again.
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

// ControlPlane is a cluster that answers, and reconciles nothing.
var ControlPlane = []Component{Etcd, APIServer}

// Address ranges that load balancers can come from. Both are documentation
// ranges, so that an address tells which cluster gave it and leads nowhere.
const (
	TargetLoadBalancers = "203.0.113.0/24"
	HubLoadBalancers    = "198.51.100.0/24"
)

// Options say what cluster to start. The zero value is a whole cluster with two
// nodes that ends with the calling process.
type Options struct {
	// Name is the name of the cluster, its context and its nodes. Default: "test".
	Name string
	// Dir holds all of the cluster. Default: a temporary directory, which
	// Shutdown removes.
	Dir string
	// Bin holds the Kubernetes programs. Default: bin in the repository's root.
	Bin string
	// Nodes is how many nodes kwok plays. Default: 2; -1 for none.
	Nodes int
	// LoadBalancerRange is where load balancers get their address from.
	// Default: TargetLoadBalancers.
	LoadBalancerRange string
	// ServiceCIDR is where Services get their cluster IP from. Default: another
	// 10.x.0.0/16 for each cluster that this process starts.
	ServiceCIDR string
	// Components are what to start. Default: Everything.
	Components []Component
	// ExtraAPIServerArgs come after the API server's own.
	ExtraAPIServerArgs []string
	// Detach lets the cluster outlive the process that starts it.
	Detach bool
	// Progress, if set, is told of steps worth waiting for.
	Progress func(step string)
}

// Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	opts  Options
	state state
	ca    *authority
	temp  bool // Dir is ours to remove.

	mu        sync.Mutex
	processes map[Component]*Process
	admin     *User
}

// serviceRanges counts the clusters that asked for no particular range.
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

// Start starts a cluster, or what is missing of the one in opts.Dir, and returns
// when Pods can be made in its default namespace.
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

// abandon ends a cluster that did not start. What a detached one left running
// is there for the next attempt; any cluster's logs are there for the reader.
func (c *Cluster) abandon() error {
	if c.opts.Detach {
		return nil
	}
	return c.killAll()
}

// Name is the cluster's name.
func (c *Cluster) Name() string { return c.opts.Name }

// Dir is where the cluster keeps itself.
func (c *Cluster) Dir() string { return c.opts.Dir }

// ServiceCIDR is where the cluster's Services get their cluster IP from.
func (c *Cluster) ServiceCIDR() netip.Prefix { return netip.MustParsePrefix(c.state.ServiceCIDR) }

// Config is a client configuration for an administrator (system:masters).
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin.Config) }

// Kubeconfig is the path of a kubeconfig for an administrator.
func (c *Cluster) Kubeconfig() string { return c.path("admin.kubeconfig") }

// LogFile is where a component's output goes.
func (c *Cluster) LogFile(component Component) string { return c.path(string(component) + ".log") }

func (c *Cluster) path(name string) string { return filepath.Join(c.opts.Dir, name) }

// Stop ends a component as an operator would, and waits until it has ended.
func (c *Cluster) Stop(component Component) error {
	return c.signal(component, (*Process).Stop)
}

// Kill ends a component as a power cut would, and waits until it has ended.
func (c *Cluster) Kill(component Component) error {
	return c.signal(component, (*Process).Kill)
}

// Pause hangs a component: its connections stay open, and nothing answers.
func (c *Cluster) Pause(component Component) error {
	return c.signal(component, (*Process).Pause)
}

// Resume lets a paused component go on.
func (c *Cluster) Resume(component Component) error {
	return c.signal(component, (*Process).Resume)
}

// Running tells whether a component's process lives, paused or not.
func (c *Cluster) Running(component Component) bool {
	process := c.process(component)
	return process != nil && process.Alive()
}

// Restart starts a component again, on the same address, ending it first if it
// runs. It returns when the API server is ready, if that is what was restarted.
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

// Shutdown ends every process, and removes the directory if the caller did not
// choose it.
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

// Shutdown ends every process of the cluster in dir, whoever started it.
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
