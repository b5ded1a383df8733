package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// member is a cluster of the demo.
type member struct {
	name          string
	serviceCIDR   string
	loadBalancers string
	labels        map[string]string // of the target; nil for the hub
}

// members are the hub and the targets. Each has its own ranges of Services and load
// balancers, so that an address identifies the cluster.
var members = []member{
	{name: "hub", serviceCIDR: "10.96.0.0/16", loadBalancers: cluster.HubLoadBalancers},
	{name: "dev", serviceCIDR: "10.97.0.0/16", loadBalancers: cluster.TargetLoadBalancers, labels: map[string]string{"env": "dev"}},
	{name: "prod", serviceCIDR: "10.98.0.0/16", loadBalancers: cluster.TargetLoadBalancers, labels: map[string]string{"env": "prod"}},
}

// namespace is the namespace on the hub to which the targets are published.
const namespace = "default"

// up starts everything except the sample.
func (d *demo) up(ctx context.Context) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	fmt.Printf(`
A hub and two targets are up, with Portico on the hub. To talk to the hub:

  export PATH="%s:$PATH" KUBECONFIG=%s

Then:

  kubectl get kubernetestargets
  kubectl apply -f config/samples/wordpress.yaml
  make down
`, filepath.Join(d.root, "bin"), d.kubeconfig("hub"))
	return nil
}

func (d *demo) start(ctx context.Context) error {
	started := time.Now()
	if err := d.build(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	fmt.Println("starting a hub and two targets: dev and prod")
	clusters, err := d.startClusters(ctx)
	if err != nil {
		return err
	}
	hub := clusters[0]
	err = step("installing Portico on the hub", func() error {
		_, err := install.Portico(ctx, hub, install.Options{Dir: d.dir, Detach: true})
		return err
	})
	if err != nil {
		return err
	}
	err = step("publishing the targets", func() error {
		return each(clusters[1:], func(i int, target *cluster.Cluster) error {
			return install.Publish(ctx, hub, target, namespace, members[1+i].labels)
		})
	})
	if err != nil {
		return err
	}
	fmt.Printf("up in %s\n", time.Since(started).Round(time.Second))
	return nil
}

// build builds the programs if one is missing. make decides whether they are up to
// date.
func (d *demo) build(ctx context.Context) error {
	for _, program := range []string{"kube", "kubectl", "portico"} {
		_, err := os.Stat(filepath.Join(d.root, "bin", program))
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		build := exec.CommandContext(ctx, "make", "--no-print-directory", "kube", "build")
		build.Dir, build.Stdout, build.Stderr = d.root, os.Stdout, os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("building missing programs: %w", err)
		}
		return nil
	}
	return nil
}

func (d *demo) startClusters(ctx context.Context) ([]*cluster.Cluster, error) {
	clusters := make([]*cluster.Cluster, len(members))
	err := each(members, func(i int, m member) error {
		return step("starting "+m.name, func() (err error) {
			clusters[i], err = d.startCluster(ctx, m)
			return err
		})
	})
	return clusters, err
}

// startCluster starts the missing components of a cluster. If an existing cluster
// cannot be started, it is removed and created again. If another program uses its port,
// the error leaves the decision to the user.
func (d *demo) startCluster(ctx context.Context, m member) (*cluster.Cluster, error) {
	dir := d.path(m.name)
	_, err := os.Stat(dir)
	second := err == nil
	start := func() (*cluster.Cluster, error) {
		return cluster.Start(ctx, cluster.Options{
			Name: m.name, Dir: dir, Detach: true,
			ServiceCIDR: m.serviceCIDR, LoadBalancerRange: m.loadBalancers,
		})
	}
	c, err := start()
	if err != nil && second && ctx.Err() == nil && !errors.Is(err, cluster.ErrPortTaken) {
		fmt.Printf("  %s does not start with the data of an earlier run (%v); creating it again\n", m.name, err)
		if err := errors.Join(cluster.Shutdown(dir), os.RemoveAll(dir)); err != nil {
			return nil, err
		}
		c, err = start()
	}
	if errors.Is(err, cluster.ErrPortTaken) {
		return nil, fmt.Errorf("%w\n`make down` and `make up` choose other ports", err)
	}
	if err != nil {
		return nil, err
	}
	kubeconfig, err := os.ReadFile(c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	return c, os.WriteFile(d.kubeconfig(m.name), kubeconfig, 0o600)
}

// each calls do for all items at once.
func each[T any](items []T, do func(int, T) error) error {
	errs := make([]error, len(items))
	var wait sync.WaitGroup
	for i, item := range items {
		wait.Go(func() { errs[i] = do(i, item) })
	}
	wait.Wait()
	return errors.Join(errs...)
}
