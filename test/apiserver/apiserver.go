// Package apiserver starts a real API server, with its etcd, for one test.
package apiserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/portico-io/portico/test/cluster"
)

// timeout is the limit on the start of the API server on a busy machine.
const timeout = 3 * time.Minute

// Start starts an API server that runs until the test ends, and returns an
// administrator's access to it. Options may change its environment first.
func Start(t testing.TB, options ...func(*envtest.Environment)) *rest.Config {
	t.Helper()
	binaries := filepath.Join(Root(t), "bin")
	if _, err := os.Stat(filepath.Join(binaries, "kube-apiserver")); err != nil {
		t.Fatalf("there is no API server to test against (%v); build one with: make kube", err)
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    binaries,
		ControlPlaneStartTimeout: timeout, ControlPlaneStopTimeout: timeout,
	}
	for _, option := range options {
		option(environment)
	}
	cfg, err := environment.Start()
	if err != nil {
		t.Fatalf("starting an API server: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	cfg.QPS, cfg.Burst = -1, -1
	return cfg
}

// Root returns the root directory of the repository.
func Root(t testing.TB) string {
	t.Helper()
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}
