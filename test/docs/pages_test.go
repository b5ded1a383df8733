package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/portico-io/portico/test/cluster"
)

// page is README.md, or a page of docs that is not generated.
type page struct {
	path string // relative to the root of the repository
	text string
}

// pages returns all pages, except for the generated ones in docs/reference.
func pages(t *testing.T) []page {
	t.Helper()
	return read(t, "README.md", "docs/*.md")
}

func read(t *testing.T, patterns ...string) []page {
	t.Helper()
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	var out []page
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no page is at %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			relative, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, page{path: filepath.ToSlash(relative), text: string(text)})
		}
	}
	return out
}

// after begins the note in the first line of a page that names the previous page.
const after = "after "

// inOrder returns the pages with commands, each after its previous page. The first is
// README.md.
func inOrder(t *testing.T, all []page) []page {
	t.Helper()
	next := map[string]page{}
	typed := 0
	for _, p := range all {
		typing := false
		for _, b := range blocks(p.text) {
			typing = typing || b.language == "console"
		}
		if !typing {
			continue
		}
		typed++
		if p.path == "README.md" {
			next[""] = p
			continue
		}
		first, _, _ := strings.Cut(p.text, "\n")
		m := note.FindStringSubmatch(first)
		if m == nil || !strings.HasPrefix(m[1], after) {
			t.Errorf("%s has commands, and its first line does not say after which page", p.path)
			continue
		}
		before := strings.TrimPrefix(m[1], after)
		if other, taken := next[before]; taken {
			t.Errorf("%s and %s both come after %s", other.path, p.path, before)
		}
		next[before] = p
	}
	var out []page
	for p, found := next[""]; found && len(out) < len(all); p, found = next[p.path] {
		out = append(out, p)
	}
	if len(out) != typed {
		t.Errorf("%d of the %d pages with commands come after README.md", len(out), typed)
	}
	return out
}

func TestOrder(t *testing.T) { inOrder(t, pages(t)) }

// TestLength limits the length of pages.
func TestLength(t *testing.T) {
	for _, p := range pages(t) {
		most := 300
		if p.path == "README.md" {
			most = 200
		}
		if lines := strings.Count(p.text, "\n"); lines > most {
			t.Errorf("%s has %d lines; %d is the most", p.path, lines, most)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the fragments of the headings in a page.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := link.ReplaceAllString(m[1], "]")
		out[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(name), ""), " ", "-")] = true
	}
	return out
}

// TestLinks follows every link from a page to another page, and to a heading. It does
// not follow links to other sites.
func TestLinks(t *testing.T) {
	all := read(t, "README.md", "docs/*.md", "docs/reference/*.md", "policies/README.md")
	byPath := map[string]page{}
	for _, p := range all {
		byPath[p.path] = p
	}
	root, err := cluster.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(p.text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			file, anchor, _ := strings.Cut(m[1], "#")
			to := p.path
			if file != "" {
				to = path.Join(path.Dir(p.path), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", p.path, m[1])
				continue
			}
			if anchor != "" && !anchors(byPath[to].text)[anchor] {
				t.Errorf("%s links to %s, and no heading there has that name", p.path, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no page links to another")
	}
}

// TestReachable follows links from README.md to every page.
func TestReachable(t *testing.T) {
	front := read(t, "README.md")[0]
	for _, p := range read(t, "docs/*.md", "docs/reference/*.md", "policies/README.md") {
		if !strings.Contains(front.text, "("+p.path+")") {
			t.Errorf("README.md does not link to %s", p.path)
		}
	}
}
