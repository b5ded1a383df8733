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

// code returns the code of a page: the lines of its blocks that a reader types, and the
// spans in its text.
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

// codeOf returns the code of several pages.
func codeOf(all []page) (typed, spans []string) {
	for _, p := range all {
		t, s := code(p.text)
		typed, spans = append(typed, t...), append(spans, s...)
	}
	return typed, spans
}

// TestMakeTargets looks up every make target in the pages.
func TestMakeTargets(t *testing.T) {
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	typed, spans := codeOf(pages(t))
	named := regexp.MustCompile(`^make ([a-z]+)`)
	var found []string
	for _, line := range append(typed, spans...) {
		m := named.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		found = append(found, m[1])
		if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
			t.Errorf("a page says %q, and the Makefile has no %s", line, m[1])
		}
	}
	for _, must := range []string{"demo", "test", "down", "install", "verify", "help"} {
		if !slices.Contains(found, must) {
			t.Errorf("no page mentions make %s", must)
		}
	}
}

// TestFlags looks up every option of portico in the pages: a code span that begins with
// an option, or with portico.
func TestFlags(t *testing.T) {
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "portico"), "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("portico --help: %v\n%s", err, help)
	}
	_, spans := codeOf(pages(t))
	found := 0
	for _, span := range spans {
		if !strings.HasPrefix(span, "--") && !strings.HasPrefix(span, "portico --") {
			continue
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(span, -1) {
			found++
			if !regexp.MustCompile(flag + `\b[^-]`).Match(help) {
				t.Errorf("a page names %s, and portico --help does not", flag)
			}
		}
	}
	if found == 0 {
		t.Error("no page names an option of portico")
	}
}

// aPath matches a path in the repository, also of generated files.
var aPath = regexp.MustCompile(`(?:^|[ =])((?:\.portico|api|bin|cmd|config|controllers|docs|policies|test|webhooks)(?:/[\w.-]+)*|[A-Z]+\.md|LICENSE|Makefile|Dockerfile)(?:$|[ :])`)

// checkFiles looks up every path in the pages, in a clone with a demo.
func (r *reader) checkFiles(t *testing.T, all []page) {
	t.Helper()
	typed, spans := codeOf(all)
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
		t.Error("no page names a file")
	}
	for path := range found {
		in := r.root
		if strings.HasPrefix(path, ".portico") {
			in = r.dir
		}
		if _, err := os.Stat(filepath.Join(in, path)); err != nil {
			t.Errorf("a page names a file that is not there: %v", err)
		}
	}
}
