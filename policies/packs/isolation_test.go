package packs

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
)

// isolation is a server, and programs in PATH, that record that kustomize called them.
type isolation struct {
	url      string
	requests atomic.Int32
	programs string
}

func isolate(t testing.TB) *isolation {
	t.Helper()
	out := &isolation{programs: filepath.Join(t.TempDir(), "programs")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		out.requests.Add(1)
		_, _ = w.Write([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: remote}\n"))
	}))
	t.Cleanup(server.Close)
	out.url = server.URL
	dir := t.TempDir()
	for _, program := range []string{"git", "helm", "docker", "plugin"} {
		script := "#!/bin/sh\necho " + program + " >>" + out.programs + "\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return out
}

// check fails if kustomize sent a request or started a program.
func (i *isolation) check(t testing.TB) {
	t.Helper()
	if n := i.requests.Load(); n > 0 {
		t.Errorf("%d requests", n)
	}
	if content, err := os.ReadFile(i.programs); err == nil {
		t.Errorf("programs were started: %s", content)
	}
}

// TestIsolation: a pack reaches no network, no disk and no program.
func TestIsolation(t *testing.T) {
	i := isolate(t)
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(secret, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: disk}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin := "apiVersion: someteam.example.com/v1\nkind: Plugin\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: plugin}\n"
	kustomizations := map[string]string{
		"URL":                 "resources: [thing.yaml, " + i.url + "/a.yaml]\n",
		"URLWithCapitals":     "resources: [" + strings.Replace(i.url, "http", "HTTP", 1) + "/a.yaml]\n",
		"QuotedURL":           "resources: [\"\\x68ttp" + strings.TrimPrefix(i.url, "http") + "/a.yaml\"]\n",
		"GitHub":              "resources: [github.com/kubernetes-sigs/kustomize]\n",
		"GitHubWithCapitals":  "resources: [GitHub.com/kubernetes-sigs/kustomize]\n",
		"GitOverHTTP":         "resources: [\"" + i.url + "/a.git?ref=b\"]\n",
		"GitOverSSH":          "resources: [\"git@127.0.0.1:a/b.git\"]\n",
		"GitOnDisk":           "resources: [\"file://" + filepath.Dir(secret) + "//a\"]\n",
		"ForcedGit":           "resources: [\"git::" + i.url + "/a\"]\n",
		"Component":           "resources: [thing.yaml]\ncomponents: [" + i.url + "]\n",
		"Configuration":       "resources: [thing.yaml]\nconfigurations: [" + i.url + "/a.yaml]\n",
		"Patch":               "resources: [thing.yaml]\npatches: [{path: " + i.url + "/a.yaml}]\n",
		"Replacement":         "resources: [thing.yaml]\nreplacements: [{path: " + i.url + "/a.yaml}]\n",
		"StrategicMergePatch": "resources: [thing.yaml]\npatchesStrategicMerge: [" + i.url + "/a.yaml]\n",
		"Base":                "bases: [" + i.url + "]\n",
		"CRD":                 "resources: [thing.yaml]\ncrds: [" + i.url + "]\n",
		"OpenAPI":             "resources: [thing.yaml]\nopenapi: {path: " + i.url + "}\n",
		"ConfigMap":           "resources: [thing.yaml]\nconfigMapGenerator: [{name: a, files: [" + i.url + "/a]}]\n",
		"Secret":              "resources: [thing.yaml]\nsecretGenerator: [{name: a, files: [" + secret + "]}]\n",
		"Helm":                "helmCharts: [{name: a, repo: " + i.url + "}]\n",
		"HelmWithCapitals":    "HELMCHARTS: [{name: a, repo: " + i.url + "}]\n",
		"Generator":           "generators: [plugin.yaml]\n",
		"Transformer":         "resources: [thing.yaml]\ntransformers: [plugin.yaml]\n",
		"Validator":           "resources: [thing.yaml]\nvalidators: [plugin.yaml]\n",
		"Disk":                "resources: [" + secret + "]\n",
		"Parents":             "resources: [" + strings.Repeat("../", 20) + strings.TrimPrefix(secret, "/") + "]\n",
		"FolderLikeGitHub":    "resources: [github.com/a/b]\n",
	}
	for name, kustomization := range kustomizations {
		for _, file := range []string{kustomizationFile, templateFile} {
			t.Run(name+"/"+filepath.Base(file), func(t *testing.T) {
				pack := small(map[string]string{"resources/plugin.yaml": plugin, file: kustomization})
				// The resources of the template are replaced.
				if _, err := Render(pack, decode(t, smallInstance)); err == nil && file == kustomizationFile {
					t.Error("the pack is rendered")
				}
				i.check(t)
			})
		}
	}
}

// TestLoad reads folders.
func TestLoad(t *testing.T) {
	const head = "apiVersion: resourcepacks.crossplane.io/v1alpha1\nkind: ResourcePack\nmetadata: {name: a}\n"
	cases := map[string]struct {
		reason string
		pack   string
		link   bool
		want   string
	}{
		"Works":   {reason: "Other files become spec.files.", pack: head},
		"Missing": {reason: "A folder without a pack is none.", want: "pack.yaml: the folder has no such file"},
		"Unknown": {reason: "A misspelt field is refused.", pack: head + "spec: {tier: []}\n", want: `pack.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "tier"`},
		"Kind":    {reason: "The file has a ResourcePack.", pack: "apiVersion: v1\nkind: ConfigMap\n", want: "pack.yaml: must be of kind ResourcePack, resourcepacks.crossplane.io/v1alpha1"},
		"Files":   {reason: "Files are in the folder.", pack: head + "spec: {files: {a: b}}\n", want: "pack.yaml: spec.files: leave it out"},
		"Link":    {reason: "A link leaves the folder.", pack: head, link: true, want: "link: is no regular file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{"README.md": "text", ".git/config": "hidden", "resources/a.yaml": "a: b\n", PackFile: tc.pack}
			if tc.pack == "" {
				delete(files, PackFile)
			}
			for file, content := range files {
				file = filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tc.link {
				if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
					t.Fatal(err)
				}
			}
			pack, err := Load(os.DirFS(dir))
			switch {
			case tc.want == "" && (err != nil || len(pack.Spec.Files) != 2):
				t.Errorf("%s\n%v %v", tc.reason, pack, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s\n%v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

// FuzzRender replaces one file of a pack. The result is resources or an error: never a
// crash, a request or a program.
func FuzzRender(f *testing.F) {
	for _, seed := range []struct{ file, content, region string }{
		{kustomizationFile, "resources: [thing.yaml]\n", "eu"},
		{kustomizationFile, "resources: [../../etc, /etc, https://example.org/a, \"\"]\n", "eu"},
		{kustomizationFile, "resources: [.]\n", "eu"},
		{kustomizationFile, "resources: [thing.yaml]\npatches: [{patch: \"[]\"}, {patch: \"- op: remove\"}]\n", "eu"},
		{kustomizationFile, "resources: [thing.yaml]\nreplacements: [{source: {kind: Thing}, targets: [{select: {kind: Thing}, fieldPaths: [spec.a.0.b], options: {create: true}}]}]\n", "eu"},
		{kustomizationFile, "resources: [thing.yaml]\nreplicas: [{name: thing, count: -1}]\nimages: [{name: \"*\"}]\nnamespace: $(REGION)\n", "eu"},
		{"resources/thing.yaml", "a: &a [*a]\n", "eu"},
		{"resources/thing.yaml", "apiVersion: v1\nkind: List\nitems: [{}, null]\n", "eu"},
		{"resources/thing.yaml", "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: 5, annotations: {config.kubernetes.io/origin: \"a: [\"}}\nspec: $(NO)\n", "$(REGION)"},
		{"resources/kustomizeconfig.yaml", "varReference: [{path: metadata/annotations, kind: Thing}]\nnameReference: [{kind: Thing, fieldSpecs: [{path: spec, kind: Thing}]}]\n", "eu"},
		{templateFile, "vars: [{name: A, objref: {kind: Small}}, {name: A}]\n", ""},
		{templateFile, "commonLabels: []\n", "eu"},
	} {
		f.Add(seed.file, seed.content, seed.region)
	}
	i := isolate(f)
	f.Fuzz(func(t *testing.T, file, content, region string) {
		pack := small(map[string]string{file: content})
		instance := decode(t, smallInstance)
		instance.Object["spec"].(map[string]any)["region"] = region
		objects, err := Render(pack, instance)
		if content := text(t, objects); err == nil && strings.Contains(strings.ReplaceAll(content, "$$", ""), "$(") {
			t.Errorf("a variable is not replaced:\n%s", content)
		}
		_ = Check(&v1alpha1.ResourcePack{Spec: pack.Spec})
		i.check(t)
	})
}
