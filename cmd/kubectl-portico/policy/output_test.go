package policy

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// junit is a JUnit report as a build server parses it.
type junit struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Suites   []struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Cases    []struct {
			Class   string `xml:"classname,attr"`
			Name    string `xml:"name,attr"`
			Time    string `xml:"time,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
			Output string `xml:"system-out"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

func readJUnit(t *testing.T, text string) junit {
	t.Helper()
	var out junit
	if err := xml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	tests, failures := 0, 0
	for _, s := range out.Suites {
		counted := 0
		for _, c := range s.Cases {
			if c.Failure != nil {
				counted++
			}
			if !regexp.MustCompile(`^\d+\.\d+$`).MatchString(c.Time) {
				t.Errorf("%s took %q", c.Name, c.Time)
			}
		}
		if s.Tests != len(s.Cases) || s.Failures != counted {
			t.Errorf("suite %s says %d and %d, and has %d and %d", s.Name, s.Tests, s.Failures, len(s.Cases), counted)
		}
		tests, failures = tests+s.Tests, failures+s.Failures
	}
	if out.Tests != tests || out.Failures != failures {
		t.Errorf("the report says %d and %d, and has %d and %d", out.Tests, out.Failures, tests, failures)
	}
	return out
}

// faults returns the message of each failed test, by the name of the test.
func (j junit) faults() map[string]string {
	out := map[string]string{}
	for _, s := range j.Suites {
		for _, c := range s.Cases {
			if c.Failure != nil {
				out[s.Name+": "+c.Class+": "+c.Name] = c.Failure.Message
			}
		}
	}
	return out
}

func TestJUnit(t *testing.T) {
	alone(t)
	cases := map[string]struct {
		args string
		code int
		want map[string]string
	}{
		"Tests":  {"test testdata/good", 0, map[string]string{}},
		"Fails":  {"test testdata/failing", 1, map[string]string{"wrong: scheduling.wrong_test: test_wrong": "does not hold"}},
		"Broken": {"check testdata/broken/policy.yaml", 1, map[string]string{"clock: clock: compiles": "undefined function http.send: this built-in is not allowed here; a policy decides by its input alone"}},
		"Eval": {"eval -f testdata/shop/manifests.yaml --policies testdata/good --targets testdata/targets", 1, map[string]string{
			"objects: Deployment: Deployment shop/web":        "policy replicas: TooManyReplicas: asks for 12 replicas; at most 10 (spec.replicas)",
			"applications: KubernetesApplication: shop/front": "would run nowhere",
		}},
		"NoTargets": {"eval -f testdata/shop/application.yaml --policies testdata/good", 0, map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, errs, code := run(t, "", append(strings.Fields(tc.args), "-o", "junit")...)
			if code != tc.code {
				t.Errorf("ends with %d: %s", code, errs)
			}
			if diff := cmp.Diff(tc.want, readJUnit(t, out).faults()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	alone(t)
	out, _, code := run(t, "", "test", "testdata/failing", "-o", "json")
	tested := decode[results](t, out)
	if code != 1 || tested.Passed != 1 || tested.Failed != 1 || len(tested.Policies) != 1 {
		t.Fatalf("%d: %s", code, out)
	}
	p := tested.Policies[0]
	if p.OK || p.Name != "wrong" || p.Type != "Scheduling" || p.File != "testdata/failing/scheduling/wrong.rego" || *p.Coverage != 100 || p.Revision == "" {
		t.Errorf("%+v", p)
	}
	failed := p.Tests[1]
	if failed.Passed || failed.At != "testdata/failing/scheduling/wrong_test.rego:7" || !strings.Contains(failed.Output, "found") || failed.Seconds <= 0 {
		t.Errorf("%+v", failed)
	}

	out, _, code = run(t, "", "check", "testdata/broken", "-o", "json")
	checked := decode[results](t, out)
	if code != 1 || len(checked.Policies) != 2 {
		t.Fatalf("%d: %s", code, out)
	}
	if got := checked.Policies[1].Problems[0]; got.File != "testdata/broken/scheduling/typo.rego" || got.Line != 6 || got.Column != 8 || got.Code != "rego_type_error" {
		t.Errorf("%+v", got)
	}

	out, _, code = run(t, "", "eval", "-f", "testdata/shop/application.yaml", "--policies", "testdata/good", "--targets", "testdata/targets", "-n", "shop", "--as", "ada", "-o", "json")
	found := decode[simulationResult](t, out)
	want := []applicationResult{{
		Namespace: "shop", Name: "shop", Members: []string{"Deployment web/web"}, Target: "eu",
		Excluded: []exclusionResult{{Target: "old", Why: "is excluded by policy replicas: Closed: is closed"}},
		Ranking:  []rankResult{{Target: "eu", Score: 70}, {Target: "spare"}},
	}}
	if diff := cmp.Diff(want, found.Applications); diff != "" || code != 0 {
		t.Errorf("%d: %s", code, diff)
	}
	warning := found.Objects[0].Warnings[0]
	if warning.Policy != "replicas" || warning.Code != "ManyReplicas" || warning.Field != "spec.replicas" || found.Objects[0].Outcome != allowed {
		t.Errorf("%+v", found.Objects[0])
	}
}

// TestNew: a new policy compiles, and its tests pass and cover all its lines. A second
// run does not overwrite the files.
func TestNew(t *testing.T) {
	alone(t)
	for _, kind := range []string{"scheduling", "publish", "lib"} {
		dir := t.TempDir()
		out, errs, code := run(t, "", "new", kind, "gpu-quota", "--dir", dir)
		rules := filepath.Join(dir, kind, "gpu_quota.rego")
		if code != 0 || out != rules+"\n"+filepath.Join(dir, kind, "gpu_quota_test.rego")+"\n" {
			t.Fatalf("%s: %d: %s%s", kind, code, out, errs)
		}
		if out, errs, code := run(t, "", "check", dir, "--strict"); code != 0 || errs != "" {
			t.Errorf("%s does not work: %s%s", kind, out, errs)
		}
		if out, errs, code := run(t, "", "test", dir, "--coverage", "100"); code != 0 {
			t.Errorf("%s is not tested: %s%s", kind, out, errs)
		}
		if err := os.WriteFile(rules, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := run(t, "", "new", kind, "gpu-quota", "--dir", dir); code != 2 || !strings.Contains(errs, rules+" exists, and was not changed") {
			t.Errorf("%d: %s", code, errs)
		}
		if kept, _ := os.ReadFile(rules); string(kept) != "mine" {
			t.Errorf("%s was written over", rules)
		}
	}
	for _, args := range [][]string{{"lib", "1st"}, {"lib", "Quota"}, {"lib", "../x"}, {"lib", ""}, {"library", "x"}, {"lib"}} {
		if _, errs, code := run(t, "", append([]string{"new", "--dir", t.TempDir()}, args...)...); code != 2 || !strings.HasPrefix(errs, "error: ") {
			t.Errorf("new %v: %d: %s", args, code, errs)
		}
	}
}

// TestRenderThenCheck: rendered policies are equal to their sources, also through a
// pipe.
func TestRenderThenCheck(t *testing.T) {
	alone(t)
	out, _, code := run(t, "", "render", "../../../policies")
	if code != 0 {
		t.Fatal(out)
	}
	second, errs, code := run(t, out, "render", "-")
	if diff := cmp.Diff(out, second); diff != "" || code != 0 {
		t.Errorf("%d: %s%s", code, errs, diff)
	}
	if out, errs, code := run(t, out, "check", "-", "--strict"); code != 0 {
		t.Errorf("%s%s", out, errs)
	}
}

// TestExamples runs the examples in the help of every command.
func TestExamples(t *testing.T) {
	alone(t)
	root := New(Host{Flags: genericclioptions.NewConfigFlags(true)})
	t.Chdir("../../..")
	count := 0
	dir := t.TempDir()
	for _, cmd := range root.Commands() {
		if cmd.Long == "" || cmd.Short == "" || !strings.Contains(cmd.Long, "Exit codes:") || cmd.Example == "" {
			t.Errorf("the help of %s is not whole", cmd.Name())
		}
		for _, line := range examples(cmd) {
			if strings.Contains(line, "--cluster") { // TestCluster covers it with a cluster
				continue
			}
			count++
			stdin := ""
			for part := range strings.SplitSeq(line, " | ") {
				args, ours := strings.CutPrefix(part, "kubectl portico policy ")
				if !ours {
					break // a command of kubectl itself
				}
				args = strings.ReplaceAll(strings.ReplaceAll(args, "my-policies", dir), "'{label: team}'", "{label:team}")
				out, errs, code := run(t, stdin, strings.Fields(args)...)
				if code == codeFailed {
					t.Errorf("%s: %s", line, errs)
				}
				stdin = out
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d examples", count)
	}
}

func examples(cmd *cobra.Command) []string {
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}
