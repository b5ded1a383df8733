// Package install installs Portico on a cluster as a user would, from the manifests in
// config/.
//
// It runs the manager as a process beside the cluster, because the cluster's nodes are
// simulated and run no containers. This is the only difference: the manager has the
// service account, the role and the webhooks of the installation. The webhooks have a
// URL.
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

// Namespace is the namespace in config/default.
const Namespace = "portico-system"

// Options of an installation. The zero value is the default installation, with a
// manager that ends with the calling process.
type Options struct {
	// Manifests is the kustomization to install. Default: config/claims, because the hub
	// has no other definition of claims.
	Manifests string
	// Binary is the path of the manager. Default: bin/portico in the repository's root.
	Binary string
	// Dir is the directory of the manager's kubeconfig, log and record. Default: the
	// hub's directory.
	Dir string
	// LeaderElect enables leader election. It is off by default, so that the next
	// manager of a killed one starts at once.
	LeaderElect bool
	// Args are additional arguments of the manager. They override the others.
	Args []string
	// Env is additional environment of the manager.
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

// state is the part of a manager's state that the next run needs: its address, which is
// in the webhook configurations too, and its program.
type state struct {
	WebhookPort int    `json:"webhookPort"`
	MetricsPort int    `json:"metricsPort"`
	HealthPort  int    `json:"healthPort"`
	Digest      []byte `json:"digest"`
}

// Portico installs Portico on a hub. It returns when the manager is ready and the
// webhooks have its CA. A second installation applies changed manifests, and does not
// restart a manager of the current binary.
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

// namespaceOf returns Portico's namespace in manifests.
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

// digest identifies a program. Its modification time does not, because a build of an
// unchanged program updates it.
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

// timeout is the limit on every step on a busy machine.
const timeout = time.Minute
