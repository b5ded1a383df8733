// Package install puts Portico on a cluster as a user would, from the manifests
// in config/, and runs its manager as a process beside the cluster, because the
// cluster's nodes are played and run nothing.
//
// The manager is the one thing done differently: it runs with the service
// account, the role and the webhooks that were installed, and the webhooks reach
// it by URL.
package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/test/cluster"
)

// Namespace is where the manifests put Portico.
const Namespace = "portico-system"

// Options say how to install Portico. The zero value is what a user gets, with
// a manager that ends with the calling process.
type Options struct {
	// Manifests is the kustomization to install. Default: config/default.
	Manifests string
	// Binary is the manager. Default: bin/portico in the repository's root.
	Binary string
	// Dir is where the manager keeps its kubeconfig, log and record. Default:
	// the hub's directory.
	Dir string
	// LeaderElect makes the manager wait its turn. Off by default, so that a
	// manager that was killed can be followed at once.
	LeaderElect bool
	// Args come after the manager's other arguments, and win over them.
	Args []string
	// Env is added to the manager's environment.
	Env []string
	// Detach lets the manager outlive the calling process.
	Detach bool
}

func (o Options) withDefaults(hub *cluster.Cluster) (Options, error) {
	root, err := cluster.RepoRoot()
	if err != nil {
		return o, err
	}
	if o.Manifests == "" {
		o.Manifests = filepath.Join(root, "config", "default")
	}
	if o.Binary == "" {
		o.Binary = filepath.Join(root, "bin", "portico")
	}
	if o.Dir == "" {
		o.Dir = hub.Dir()
	}
	return o, nil
}

// ports are where the manager listens. The webhooks' is written into the hub.
type ports struct {
	Webhook int `json:"webhook"`
	Metrics int `json:"metrics"`
	Health  int `json:"health"`
}

// Portico installs Portico on a hub, and returns when its manager is ready and
// the hub trusts its webhooks. Installing again applies what changed in the
// manifests, and leaves a manager alone that runs the current binary.
func Portico(ctx context.Context, hub *cluster.Cluster, opts Options) (_ *Manager, err error) {
	if opts, err = opts.withDefaults(hub); err != nil {
		return nil, err
	}
	binary, err := os.Stat(opts.Binary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no %s: run `make build` first", opts.Binary)
	}
	if err != nil {
		return nil, err
	}
	hubClient, err := client.New(hub.Config(), client.Options{})
	if err != nil {
		return nil, err
	}

	m := &Manager{hub: hub, opts: opts}
	if m.process, err = cluster.Attach(opts.Dir, processName); err != nil {
		return nil, err
	}
	if m.process != nil && (binary.ModTime().After(m.process.Started()) || m.readPorts() != nil) {
		if err := m.Stop(); err != nil {
			return nil, err
		}
	}
	running := m.Running()
	if !running {
		if err := m.choosePorts(); err != nil {
			return nil, err
		}
	}

	objects, err := Render(opts.Manifests)
	if err != nil {
		return nil, err
	}
	if objects, err = Localize(objects, fmt.Sprintf("https://127.0.0.1:%d", m.ports.Webhook)); err != nil {
		return nil, err
	}
	if err := Apply(ctx, hubClient, objects); err != nil {
		return nil, fmt.Errorf("installing Portico on %s: %w", hub.Name(), err)
	}
	if !running {
		if err := m.login(ctx); err != nil {
			return nil, err
		}
		if err := m.start(); err != nil {
			return nil, err
		}
	}
	if err := m.waitReady(ctx); err != nil {
		return nil, err
	}
	return m, waitTrusted(ctx, hubClient, objects)
}

func (m *Manager) path(name string) string { return filepath.Join(m.opts.Dir, name) }

func (m *Manager) readPorts() error {
	data, err := os.ReadFile(m.path("portico-ports.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &m.ports)
}

func (m *Manager) choosePorts() error {
	for _, port := range []*int{&m.ports.Webhook, &m.ports.Metrics, &m.ports.Health} {
		var err error
		if *port, err = cluster.FreePort(); err != nil {
			return err
		}
	}
	data, err := json.Marshal(m.ports)
	if err != nil {
		return err
	}
	return os.WriteFile(m.path("portico-ports.json"), data, 0o600)
}

// patience is how long anything here may take on a busy machine.
const patience = time.Minute
