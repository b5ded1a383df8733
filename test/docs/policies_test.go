package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// aRegoFile matches the name of a Rego file, which precedes its text in a page.
var aRegoFile = regexp.MustCompile("`((?:scheduling|publish|lib)/[a-z_]+\\.rego)`")

// TestPolicies follows policies/README.md in order: it writes the files in the page,
// and compares the output of commands with the page.
func TestPolicies(t *testing.T) {
	r := newReader(t)
	r.page = "policies/README.md"
	text, err := os.ReadFile(filepath.Join(r.root, "policies", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"scheduling", "publish", "lib"} {
		if err := os.CopyFS(filepath.Join(r.dir, "policies", dir), os.DirFS(filepath.Join(r.root, "policies", dir))); err != nil {
			t.Fatal(err)
		}
	}
	nobody := filepath.Join(r.dir, "kubeconfig") // the commands need no cluster
	exported := "export PATH='" + filepath.Join(r.root, "bin") + "':\"$PATH\" KUBECONFIG='" + nobody + "'\n"
	for file, content := range map[string]string{nobody: "apiVersion: v1\nkind: Config\n", r.shell: exported} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := string(text)
	lines := strings.Split(page, "\n")
	wrote, ran := 0, 0
	for _, b := range blocks(page) {
		switch b.language {
		case "rego":
			names := aRegoFile.FindAllStringSubmatch(strings.Join(lines[max(0, b.line-5):b.line], "\n"), -1)
			if len(names) == 0 {
				t.Fatalf("%s:%d: no text names this file", r.page, b.line)
			}
			wrote++
			if err := os.WriteFile(filepath.Join(r.dir, "policies", names[len(names)-1][1]), []byte(b.text()), 0o600); err != nil {
				t.Fatal(err)
			}
		case "console":
			for _, c := range commands(b) {
				r.follow(t, c)
				ran++
			}
		}
	}
	if wrote != 2 || ran < 8 {
		t.Errorf("%s has %d files and %d commands", r.page, wrote, ran)
	}
	_, spans := code(page)
	for _, span := range spans {
		if m := regexp.MustCompile(`^kubectl portico policy ([a-z]+) `).FindStringSubmatch(span); m != nil {
			out, err := r.run(t.Context(), "kubectl portico policy "+m[1]+" --help")
			if err != nil {
				t.Errorf("%s names %q, which does not exist:\n%s", r.page, span, out)
			}
			for _, flag := range regexp.MustCompile(`--[a-z]+`).FindAllString(span, -1) {
				if !strings.Contains(out, flag+" ") {
					t.Errorf("%s names %q, and %s is no flag of it", r.page, span, flag)
				}
			}
		}
	}
}
