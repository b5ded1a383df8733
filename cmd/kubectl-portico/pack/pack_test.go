package pack

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const samples = "../../../config/samples/packs"

// run runs kubectl portico pack, and returns its output and its exit code.
func run(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := New(strings.NewReader(stdin), &stdout, &stderr)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		var ends interface{ ExitCode() int }
		if !errors.As(err, &ends) {
			t.Fatalf("%v: %v has no exit code", args, err)
		}
		return stdout.String(), err.Error(), ends.ExitCode()
	}
	return stdout.String(), stderr.String(), 0
}

// broken returns a folder with a pack that refers to a remote resource.
func broken(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(samples, "minimal-gcp"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "resources", "kustomization.yaml")
	if err := os.WriteFile(file, []byte("resources:\n- gcp\n- https://example.org/a.yaml\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCommands(t *testing.T) {
	const sample, instance = samples + "/minimal-gcp", samples + "/small-infra.yaml"
	const remote = `resources/kustomization.yaml:3: resources[1]: "https://example.org/a.yaml" is remote; a pack contains all of its files`
	cases := map[string]struct {
		reason string
		stdin  string
		args   []string
		out    string // a part of the output
		errs   string // a part of the error
		code   int
	}{
		"Check": {
			reason: "A pack without problems is summarized.", args: []string{"check", sample},
			out: "9 resources of 8 kinds from 20 files; variables REGION GCP_PROJECT_ID CRED_SECRET_KEY CRED_SECRET_NAME CRED_SECRET_NAMESPACE\n",
		},
		"CheckBroken": {
			reason: "Problems are the output, and the exit code is 1.", args: []string{"check", broken(t)},
			out: remote + "\n", errs: "has problems: 1", code: codeRejected,
		},
		"CheckNoFolder": {
			reason: "A folder that does not exist is no problem of a pack.", args: []string{"check", "no"}, errs: "no such file", code: codeFailed,
		},
		"CheckFile": {
			reason: "A pack is a folder.", args: []string{"check", instance}, errs: "is no folder", code: codeFailed,
		},
		"CheckNoPack": {
			reason: "The folder contains pack.yaml.", args: []string{"check", t.TempDir()}, errs: "pack.yaml: the folder has no such file", code: codeRejected,
		},
		"NoArguments": {reason: "A folder is required.", args: []string{"check"}, errs: "accepts 1 arg", code: codeFailed},
		"Render": {
			reason: "The resources of an instance without a UID are printed.", args: []string{"render", sample, "-f", instance},
			out: "    gcp.resourcepacks.crossplane.io/uid: 00000000-0000-0000-0000-000000000000\n  name: small-infra-gcp-provider\n",
		},
		"RenderStdin": {
			reason: "The instance may be on the standard input.", args: []string{"render", sample, "-f", "-"}, stdin: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
			errs: "kind: must be MinimalGCP, gcp.resourcepacks.crossplane.io/v1alpha1, not ConfigMap, v1", code: codeRejected,
		},
		"RenderBroken":     {reason: "A pack with problems is not rendered.", args: []string{"render", broken(t), "-f", instance}, errs: remote, code: codeRejected},
		"RenderNoInstance": {reason: "The file must exist.", args: []string{"render", sample, "-f", "no"}, errs: "no such file", code: codeFailed},
		"RenderNoYAML":     {reason: "The file must be YAML.", args: []string{"render", sample, "-f", "-"}, stdin: "a: b: c", errs: "reading -: ", code: codeFailed},
		"RenderNoFlag":     {reason: "An instance is required.", args: []string{"render", sample}, errs: "name the file with the instance: -f FILE", code: codeFailed},
		"UnknownFlag":      {reason: "A misspelt flag is refused.", args: []string{"check", "--no"}, errs: "unknown flag", code: codeFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, errs, code := run(t, tc.stdin, tc.args...)
			if code != tc.code || !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.errs) {
				t.Errorf("%s\nexit code %d, want %d\noutput:\n%s\nerror:\n%s", tc.reason, code, tc.code, out, errs)
			}
		})
	}
}

// TestRenderAll prints the resources of the golden file of the sample, with the UID of
// the instance in the input.
func TestRenderAll(t *testing.T) {
	content, err := os.ReadFile(samples + "/small-infra.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../../policies/packs/testdata/small-infra.yaml")
	if err != nil {
		t.Fatal(err)
	}
	withUID := strings.Replace(string(content), "metadata:\n", "metadata:\n  uid: 34646233-f58e-4c99-b0a8-0d766533b12c\n", 1)
	out, errs, code := run(t, withUID, "render", samples+"/minimal-gcp", "-f", "-")
	if diff := cmp.Diff(string(want), out); diff != "" || errs != "" || code != 0 {
		t.Errorf("exit code %d, errors %q (-want +got):\n%s", code, errs, diff)
	}
}
