package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/portico-io/portico/test/cluster"
)

func readme(t *testing.T) string {
	t.Helper()
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// code is what a page sets as code: the lines of its blocks that a reader types,
// and the spans in its text.
func code(page string) (typed, spans []string) {
	text := page
	for _, b := range blocks(page) {
		switch b.language {
		case "sh":
			typed = append(typed, b.lines...)
		case "console":
			for _, c := range commands(b) {
				typed = append(typed, c.text)
			}
		}
		text = strings.Replace(text, b.text(), "", 1)
	}
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		spans = append(spans, m[1])
	}
	return typed, spans
}

// TestMakeTargets looks up every make target that README.md names.
func TestMakeTargets(t *testing.T) {
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	typed, spans := code(readme(t))
	named := regexp.MustCompile(`^make ([a-z]+)`)
	var found []string
	for _, line := range append(typed, spans...) {
		m := named.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		found = append(found, m[1])
		if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
			t.Errorf("README.md says %q, and the Makefile has no %s", line, m[1])
		}
	}
	for _, must := range []string{"demo", "test", "down", "install", "verify", "help"} {
		if !slices.Contains(found, must) {
			t.Errorf("README.md does not mention make %s", must)
		}
	}
}

// TestFlags looks up every option of portico that README.md names: a code span
// that begins with it, or that begins with portico.
func TestFlags(t *testing.T) {
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "portico"), "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("portico --help: %v\n%s", err, help)
	}
	_, spans := code(readme(t))
	found := 0
	for _, span := range spans {
		if !strings.HasPrefix(span, "--") && !strings.HasPrefix(span, "portico --") {
			continue
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(span, -1) {
			found++
			if !regexp.MustCompile(flag + `\b[^-]`).Match(help) {
				t.Errorf("README.md names %s, and portico --help does not", flag)
			}
		}
	}
	if found == 0 {
		t.Error("README.md names no option of portico")
	}
}

// aPath is a path in the repository, or of what make makes in it.
var aPath = regexp.MustCompile(`(?:^|[ =])((?:\.portico|api|bin|cmd|config|controllers|policies|test|webhooks)(?:/[\w.-]+)*|[A-Z]+(?:\.md)?|Makefile|Dockerfile)(?:$|[ :])`)

// checkFiles looks up every path that README.md names, in a clone with a demo.
func (r *reader) checkFiles(t *testing.T) {
	t.Helper()
	typed, spans := code(readme(t))
	found := map[string]bool{}
	for _, span := range spans {
		if m := aPath.FindStringSubmatch(span); m != nil && m[0] == span {
			found[m[1]] = true
		}
	}
	for _, line := range typed {
		for _, m := range regexp.MustCompile(`(?:^|[ =])((?:\.portico|config)/[\w./-]+)`).FindAllStringSubmatch(line, -1) {
			found[m[1]] = true
		}
	}
	if len(found) == 0 {
		t.Error("README.md names no file")
	}
	for path := range found {
		in := r.root
		if strings.HasPrefix(path, ".portico") {
			in = r.dir
		}
		if _, err := os.Stat(filepath.Join(in, path)); err != nil {
			t.Errorf("README.md names a file that is not there: %v", err)
		}
	}
}
