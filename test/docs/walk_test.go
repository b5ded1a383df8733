package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// timeout is the limit on one command, and on the wait for its output.
const timeout = time.Minute

// cacheDelay is the time until the API server selects webhooks by the new labels of a
// namespace. A reader takes longer for the next command.
const cacheDelay = 2 * time.Second

// reader follows a page in a directory that looks like a clone of the repository. The
// directory has a demo of its own.
type reader struct {
	root  string // the root of the repository
	dir   string // the current directory
	shell string // the exported variables of the shell
	page  string // the current page
	// checked means that the manifests and files in the pages have been checked.
	checked bool
}

func newReader(t *testing.T) *reader {
	t.Helper()
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{root: root, dir: t.TempDir(), page: "README.md", shell: filepath.Join(t.TempDir(), "exported")}
	for _, name := range []string{"bin", "config"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	makefile := fmt.Sprintf("%%:\n\t@$(MAKE) --no-print-directory -C '%s' $@\n", root)
	for name, content := range map[string]string{
		filepath.Join(r.dir, "Makefile"): makefile,
		r.shell:                          fmt.Sprintf("export PORTICO_DIR='%s'\n", filepath.Join(r.dir, ".portico")),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// run runs a command, and returns its output.
func (r *reader) run(ctx context.Context, text string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*timeout)
	defer cancel()
	const script = `. "$1"; eval "$2"; status=$?; export -p >"$1"; exit $status`
	cmd := exec.CommandContext(ctx, "bash", "-c", script, "bash", r.shell, text)
	cmd.Dir = r.dir
	cmd.WaitDelay = time.Second // the clusters outlive make
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// follow repeats a command until its output is as in the page.
func (r *reader) follow(t *testing.T, c command) {
	t.Helper()
	started := time.Now()
	for {
		out, err := r.run(t.Context(), c.text)
		problem := ""
		switch {
		case err != nil && !c.fails():
			problem = "fails: " + err.Error()
		case err == nil && c.fails():
			problem = "succeeds, and is shown to fail"
		case !shows(c.shown(), out):
			problem = "prints something else than is shown"
		}
		if problem == "" {
			if strings.Contains(c.text, " label namespace ") {
				time.Sleep(cacheDelay)
			}
			return
		}
		if !c.isReadOnly() || time.Since(started) > timeout {
			t.Fatalf("%s:%d: $ %s\n%s\nIt prints:\n%s\nThe page shows:\n%s", r.page, c.line, c.text, problem, out, strings.Join(c.shown(), "\n"))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// TestWalkThrough follows the pages in order, and compares the output of commands with
// the pages.
func TestWalkThrough(t *testing.T) {
	r := newReader(t)
	t.Cleanup(func() {
		if out, err := r.run(context.Background(), "make down"); err != nil {
			t.Errorf("make down: %v\n%s", err, out)
		}
	})
	all := pages(t)
	ran := 0
	for _, p := range inOrder(t, all) {
		r.page = p.path
		for _, b := range blocks(p.text) {
			switch b.language {
			case "note":
				r.followNote(t, b)
			case "console":
				for _, c := range commands(b) {
					r.follow(t, c)
					ran++
				}
			}
			if ran > 0 && !r.checked { // the clusters run now
				r.checked = true
				for _, p := range all {
					r.checkManifests(t, p)
				}
				r.checkFiles(t, all)
			}
		}
	}
	if ran == 0 {
		t.Fatal("no page has a console block")
	}
	r.checkInstall(t)
}

// followNote executes a note in a page.
func (r *reader) followNote(t *testing.T, note block) {
	t.Helper()
	switch request := note.lines[0]; {
	case strings.HasPrefix(request, after):
	case request == "stop Portico":
		if err := install.Shutdown(filepath.Join(r.dir, ".portico")); err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatalf("%s:%d: the test does not know how to %q", r.page, note.line, request)
	}
}

// checkManifests applies every manifest in a page to the hub, as a dry run.
func (r *reader) checkManifests(t *testing.T, p page) {
	t.Helper()
	for _, b := range blocks(p.text) {
		if b.language != "yaml" || strings.Contains(b.text(), "kind: Kustomization") { // no cluster has this kind
			continue
		}
		out, err := r.run(t.Context(), "kubectl apply --dry-run=server -f - <<'EOF'\n"+b.text()+"EOF")
		if err != nil {
			t.Errorf("%s:%d: the hub refuses this manifest: %v\n%s", p.path, b.line, err, out)
		}
	}
}

// checkInstall installs Portico as in the pages, on the hub from which it was
// uninstalled before.
func (r *reader) checkInstall(t *testing.T) {
	t.Helper()
	const image = "registry.example.org/portico:v1"
	out, err := r.run(t.Context(), "make -C '"+r.root+"' install IMAGE="+image+
		" && kubectl -n portico-system get deployment portico -o jsonpath='image={..image}'")
	if err != nil || !strings.HasSuffix(out, "image="+image) {
		t.Errorf("make install IMAGE=%s: %v\n%s", image, err, out)
	}
}
