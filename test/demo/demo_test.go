package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/portico-io/portico/test/cluster"
)

// TestDemo starts a demo, starts it again after some processes were killed, shows the
// sample, and stops it. Nothing is left.
func TestDemo(t *testing.T) {
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{root: root, dir: filepath.Join(t.TempDir(), ".portico")}
	t.Cleanup(func() { _ = d.down(t.Context()) })

	if err := d.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	identity := "get namespace kube-system -o jsonpath={.metadata.uid}"
	before, err := d.output(t.Context(), "hub", identity)
	if err != nil {
		t.Fatal(err)
	}

	var killed []int
	for _, victim := range []struct{ dir, process string }{
		{d.dir, "portico"},
		{d.path("hub"), string(cluster.ControllerManager)},
		{d.path("dev"), string(cluster.Etcd)},
		{d.path("prod"), string(cluster.APIServer)},
	} {
		process, err := cluster.Attach(victim.dir, victim.process)
		if err != nil || process == nil {
			t.Fatalf("finding %s in %s: %v, %v", victim.process, victim.dir, process, err)
		}
		killed = append(killed, process.PID())
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.show(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := d.output(t.Context(), "hub", identity)
	if err != nil {
		t.Fatal(err)
	}
	if after != before {
		t.Errorf("the hub is another one: %s, was %s", after, before)
	}

	var alive []*cluster.Process
	for _, dir := range []string{d.dir, d.path("hub"), d.path("dev"), d.path("prod")} {
		for _, name := range append([]string{"portico"}, names(cluster.Everything)...) {
			process, err := cluster.Attach(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			if process != nil {
				alive = append(alive, process)
			}
		}
	}
	if want := 3*len(cluster.Everything) + 1; len(alive) != want {
		t.Errorf("%d processes run, want %d", len(alive), want)
	}
	for _, process := range alive {
		if slices.Contains(killed, process.PID()) {
			t.Errorf("process %d was killed, and is said to run", process.PID())
		}
	}

	if err := d.down(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, process := range alive {
		if process.Alive() {
			t.Errorf("process %d was left running", process.PID())
		}
	}
	if _, err := os.Stat(d.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was left (%v)", d.dir, err)
	}
	if err := d.down(t.Context()); err != nil {
		t.Errorf("a second down: %v", err)
	}
}

func names(components []cluster.Component) []string {
	var out []string
	for _, component := range components {
		out = append(out, string(component))
	}
	return out
}
