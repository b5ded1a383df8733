// Package install puts Portico on a cluster as a user would, from the manifests
// in config/, and runs its manager as a process beside the cluster, because the
// cluster's nodes are played and run nothing.
//
// The manager is the one thing done differently: it runs with the service
// account, the role and the webhooks that were installed, and the webhooks reach
// it by URL.
package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/test/cluster"
)

// Namespace is where config/default puts Portico.
const Namespace = "portico-system"

// Options say how to install Portico. The zero value is what a user gets, with
// a manager that ends with the calling process.
type Options struct {
	// Manifests is the kustomization to install. Default: config/claims, because
	// nobody else defines claims on a hub of ours.
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
		o.Manifests = filepath.Join(root, "config", "claims")
	}
	if o.Binary == "" {
		o.Binary = filepath.Join(root, "bin", "portico")
	}
	if o.Dir == "" {
		o.Dir = hub.Dir()
	}
	return o, nil
}

// state is what of a manager another run must know: where it listens, which for
// the webhooks is written into the hub too, and what program it runs.
type state struct {
	WebhookPort int    `json:"webhookPort"`
	MetricsPort int    `json:"metricsPort"`
	HealthPort  int    `json:"healthPort"`
	Digest      []byte `json:"digest"`
}

// Portico installs Portico on a hub, and returns when its manager is ready and
// the hub trusts its webhooks. Installing again applies what changed in the
// manifests, and leaves a manager alone that runs the current binary.
func Portico(ctx context.Context, hub *cluster.Cluster, opts Options) (_ *Manager, err error) {
	if opts, err = opts.withDefaults(hub); err != nil {
		return nil, err
	}
	digest, err := digest(opts.Binary)
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
	if m.process != nil && (m.readState() != nil || !bytes.Equal(m.state.Digest, digest)) {
		if err := m.Stop(); err != nil {
			return nil, err
		}
	}
	running := m.Running()
	if !running {
		m.state.Digest = digest
		if err := m.choosePorts(); err != nil {
			return nil, err
		}
	}

	objects, err := Render(opts.Manifests)
	if err != nil {
		return nil, err
	}
	if m.namespace, err = namespaceOf(objects); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", opts.Manifests, err)
	}
	if objects, err = Localize(objects, fmt.Sprintf("https://127.0.0.1:%d", m.state.WebhookPort)); err != nil {
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

// namespaceOf returns the namespace that manifests put Portico in.
func namespaceOf(objects []*unstructured.Unstructured) (string, error) {
	for _, object := range objects {
		if object.GetKind() == "ServiceAccount" && object.GetName() == serviceAccount {
			return object.GetNamespace(), nil
		}
	}
	return "", fmt.Errorf("there is no ServiceAccount %s", serviceAccount)
}

func (m *Manager) path(name string) string { return filepath.Join(m.opts.Dir, name) }

func (m *Manager) readState() error {
	data, err := os.ReadFile(m.path(stateFile))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &m.state)
}

func (m *Manager) choosePorts() error {
	for _, port := range []*int{&m.state.WebhookPort, &m.state.MetricsPort, &m.state.HealthPort} {
		var err error
		if *port, err = cluster.FreePort(); err != nil {
			return err
		}
	}
	data, err := json.Marshal(m.state)
	if err != nil {
		return err
	}
	return os.WriteFile(m.path(stateFile), data, 0o600)
}

const stateFile = "portico-state.json"

// digest tells programs apart. Their age does not: building an unchanged program
// makes it young again.
func digest(file string) ([]byte, error) {
	program, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, program)
	return hash.Sum(nil), err
}

// timeout is how long anything here may take on a busy machine.
const timeout = time.Minute
