package manifests

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/bundle"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
)

const (
	rules = "package scheduling.quota\n\nimport rego.v2\n\ndeny contains {\"code\": \"A\", \"msg\": \"no\"} if input.objct.kind == \"Pod\"\n"
	tests = "package scheduling.quota_test\n\nimport data.scheduling.quota\n\ntest_it if count(quota.deny) == 0 with input as {}\n"
	// manifest has the rules from line 13 on, eight characters in.
	manifest = `# A list of two.
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
# A policy.
apiVersion: policy.workload.crossplane.io/v1alpha1
kind: Policy
metadata: {name: quota}
spec:
  type: Scheduling
  modules:
    quota.rego: |
        package scheduling.quota

        import rego.v2

        deny contains {"code": "A", "msg": "no"} if input.objct.kind == "Pod"
`
)

// files writes files, and returns their directory.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func bundled(t *testing.T, modules map[string]string) string {
	t.Helper()
	b := bundle.Bundle{Data: map[string]any{"ignored": true}}
	for name, text := range modules {
		b.Modules = append(b.Modules, bundle.ModuleFile{URL: name, Path: name, Raw: []byte(text)})
	}
	var out bytes.Buffer
	if err := bundle.NewWriter(&out).DisableFormat(true).Write(b); err != nil {
		t.Fatal(err)
	}
	return files(t, map[string]string{"bundle.tar.gz": out.String()})
}

// TestPolicies reads one policy from every format. The policy is the same, and its
// problems have the position in the file.
func TestPolicies(t *testing.T) {
	tree := files(t, map[string]string{
		"scheduling/quota.rego": rules, "scheduling/quota_test.rego": tests,
		".hidden/other.rego": "nonsense", "values.yaml": "{{ this is no YAML }}: [", "notes.txt": "nor this",
	})
	one := files(t, map[string]string{"policy.yaml": manifest})
	packed := bundled(t, map[string]string{"/scheduling/quota.rego": rules, "/scheduling/quota_test.rego": tests})
	cases := map[string]struct {
		reason string
		path   string
		at     string
	}{
		"Directory": {reason: "All Rego files of a directory are read.", path: tree, at: filepath.Join(tree, "scheduling/quota.rego") + ":5:51"},
		"File":      {reason: "A file is read with its tests.", path: filepath.Join(tree, "scheduling/quota.rego"), at: filepath.Join(tree, "scheduling/quota.rego") + ":5:51"},
		"Tests":     {reason: "A file of tests is read with its module.", path: filepath.Join(tree, "scheduling/quota_test.rego"), at: filepath.Join(tree, "scheduling/quota.rego") + ":5:51"},
		"Manifest":  {reason: "A position in a manifest is the manifest's line.", path: filepath.Join(one, "policy.yaml"), at: filepath.Join(one, "policy.yaml") + ":19:59"},
		"Manifests": {reason: "A position in a manifest of a directory is the manifest's line.", path: one, at: filepath.Join(one, "policy.yaml") + ":19:59"},
		"Bundle":    {reason: "A position in a bundle names the file in the bundle.", path: filepath.Join(packed, "bundle.tar.gz"), at: filepath.Join(packed, "bundle.tar.gz") + ":scheduling/quota.rego:5:51"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sources, err := Policies(nil, tc.path)
			if err != nil || len(sources) != 1 {
				t.Fatalf("%s\n%d policies, %v", tc.reason, len(sources), err)
			}
			s := sources[0]
			if s.Name != "quota" || s.Spec.Type != policyv1alpha1.Scheduling || s.Spec.Modules["quota.rego"] != rules {
				t.Errorf("got %+v", s.Policy)
			}
			report := engine.New(engine.Options{}).Check(context.Background(), s.Policy)
			if len(report.Problems) == 0 {
				t.Fatal("the mistake was not found")
			}
			reported := s.Locate(report.Problems[0]).String()
			if !strings.HasPrefix(reported, tc.at+": undefined ref") || !caretAt(reported, "objct") {
				t.Errorf("%s\nwant %s, got\n%s", tc.reason, tc.at, reported)
			}
		})
	}
}

// caretAt tells whether the caret is under a word.
func caretAt(problem, word string) bool {
	lines := strings.Split(problem, "\n")
	return len(lines) == 3 && strings.Index(lines[1], word) == strings.Index(lines[2], "^")
}

func TestPoliciesThatAreNone(t *testing.T) {
	dir := files(t, map[string]string{
		"a/quota.rego": rules, "b/quota.rego": rules, "same.yaml": manifest,
		"lonely/x_test.rego": tests, "empty/x.txt": "", "typo/policy.yaml": strings.Replace(manifest, "modules:", "module:", 1),
		"yaml/policy.yaml": "apiVersion: policy.workload.crossplane.io/v1alpha1\nkind: Policy\nspec: {\n",
		"torn.tar.gz":      "no bundle",
	})
	cases := map[string]struct {
		paths []string
		want  string
	}{
		"Nowhere":   {[]string{"nowhere"}, "nowhere: no such file"},
		"Empty":     {[]string{"empty"}, "there is no policy in "},
		"Twice":     {[]string{"a", "b"}, "are both policy quota; rename one of them"},
		"InBoth":    {[]string{"a", "same.yaml"}, "are both policy quota; leave one of them out"},
		"Lonely":    {[]string{"lonely"}, "tests nothing: there is no "},
		"Misspelt":  {[]string{"typo"}, `policy.yaml:8: strict decoding error: unknown field "spec.module"`},
		"NotYAML":   {[]string{"yaml"}, "policy.yaml:3: "},
		"NotBundle": {[]string{"torn.tar.gz"}, "torn.tar.gz: reading the bundle: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, p := range tc.paths {
				paths = append(paths, filepath.Join(dir, p))
			}
			_, err := Policies(nil, paths...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestRender: a rendered policy has exactly the modules of its source.
func TestRender(t *testing.T) {
	shipped, err := engine.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	odd := shipped[0].DeepCopy()
	odd.Name = "odd"
	odd.Spec.Modules = map[string]string{
		"tabs.rego": rules + "\n\tx := 1\n", "spaces.rego": "package a   \n\n\n# trailing \t\n",
		"indented.rego": "  package a\n", "first.rego": "\npackage a\n", "open.rego": "package a", "long.rego": "package a\n\n\n",
		"windows.rego": "package a\r\nx := 1\r\n", "letters.rego": "package a\nx := \"ä \u2028 \U0001F600 \u0085\"\n", "bell.rego": "package a\a\n",
	}
	var all strings.Builder
	for _, p := range append(shipped, odd) {
		text, err := Render(p)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(text + "---\n")
	}
	if strings.Contains(all.String(), "status") || strings.Contains(all.String(), "creationTimestamp") {
		t.Error("a manifest has fields that only a hub sets")
	}
	back, err := Policies(strings.NewReader(all.String()), "-")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]policyv1alpha1.PolicySpec{}
	for _, s := range back {
		got[s.Name] = s.Spec
	}
	for _, p := range append(shipped, odd) {
		if diff := cmp.Diff(p.Spec.Modules, got[p.Name].Modules); diff != "" {
			t.Errorf("%s: %s", p.Name, diff)
		}
		if engine.Revision(p.Spec) != engine.Revision(got[p.Name]) {
			t.Errorf("%s is another policy", p.Name)
		}
	}
}

func TestDocuments(t *testing.T) {
	dir := files(t, map[string]string{
		"a.yaml":      "# Nothing but a comment.\n---\nkind: A\nspec: {count: 3}\n--- \n\n# One more.\n\nkind: B\n",
		"b/list.json": `{"kind": "List", "apiVersion": "v1", "items": [{"kind": "C"}, {"kind": "D"}]}`,
		"c.txt":       "kind: E",
		".d.yaml":     "kind: F",
	})
	documents, err := Documents(strings.NewReader("kind: G\n"), dir, "-")
	if err != nil {
		t.Fatal(err)
	}
	type found struct {
		File string
		Line int
		Kind string
	}
	var got []found
	for _, d := range documents {
		_, kind := d.Kind()
		got = append(got, found{strings.TrimPrefix(d.File, dir+string(filepath.Separator)), d.Line, kind})
	}
	want := []found{{"a.yaml", 3, "A"}, {"a.yaml", 9, "B"}, {filepath.Join("b", "list.json"), 1, "C"}, {filepath.Join("b", "list.json"), 1, "D"}, {"-", 1, "G"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if count := documents[0].Content["spec"].(map[string]any)["count"]; count != int64(3) {
		t.Errorf("a whole number is %T", count)
	}
}

// TestDocumentsThatAreNone: all errors in files are reported at once, each with its
// line.
func TestDocumentsThatAreNone(t *testing.T) {
	dir := files(t, map[string]string{
		"a.yaml": "kind: A\n---\nkind: B\nkind: B\n", "b.yaml": "- a\n- b\n", "c.yaml": "a: b\n c: d\n", "d.json": `{"kind": "List", "items": [1]}`,
	})
	_, err := Documents(nil, dir, filepath.Join(dir, "nowhere.yaml"))
	if err == nil {
		t.Fatal("all is well")
	}
	for _, want := range []string{"a.yaml:4: ", "b.yaml:1: holds []interface {} and not an object", "c.yaml:2: ", "d.json:1: an item of the List is not an object", "nowhere.yaml: no such file"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
}
