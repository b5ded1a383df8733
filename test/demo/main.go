// Command demo is behind `make up`, `make demo` and `make down`: a hub and two targets
// on this machine, with Portico on the hub. They run until `make down`.
//
// All files are in .portico, or in the directory in PORTICO_DIR: a kubeconfig for each
// cluster, and a directory for each with its keys, data, logs, and a record of each
// process. A second run starts the missing processes, and leaves the others.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/test/cluster"
)

func main() {
	// The messages of libraries about clusters that come or go are not needed.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	root, err := cluster.RepoRoot()
	if err != nil {
		return err
	}
	d := &demo{root: root, dir: filepath.Join(root, ".portico")}
	if elsewhere := os.Getenv("PORTICO_DIR"); elsewhere != "" {
		if d.dir, err = filepath.Abs(elsewhere); err != nil {
			return err
		}
	}
	commands := map[string]func(context.Context) error{"up": d.up, "demo": d.show, "down": d.down}
	if len(args) != 1 || commands[args[0]] == nil {
		return fmt.Errorf("usage: demo up|demo|down")
	}
	unlock, err := d.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return commands[args[0]](ctx)
}

// demo is the demo of one clone of the repository.
type demo struct {
	root string // the root of the repository
	dir  string // the directory of the demo
}

func (d *demo) path(elements ...string) string {
	return filepath.Join(append([]string{d.dir}, elements...)...)
}

// kubeconfig returns the path of a cluster's kubeconfig.
func (d *demo) kubeconfig(name string) string { return d.path(name + ".kubeconfig") }

// lock excludes other runs. The lock is on the parent directory, because down removes
// the directory of the demo.
func (d *demo) lock() (unlock func(), err error) {
	file, err := os.Open(filepath.Dir(d.dir))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another make up, demo or down is at work here; wait until it has ended")
	}
	return func() { file.Close() }, nil
}
