package policy

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/manifests"
)

// decideExample evaluates the policies for an example, as the tests of the engine do.
func decideExample(t *testing.T, name, file string, about policyv1alpha1.PolicyType) *engine.Decision {
	t.Helper()
	documents, err := manifests.Documents(nil, file)
	if err != nil {
		t.Fatal(err)
	}
	policies, err := engine.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	alone := policies[slices.IndexFunc(policies, func(p *policyv1alpha1.Policy) bool { return p.Name == name })]
	alone.Spec.Action = policyv1alpha1.Deny
	q := engine.Question{Type: about, Question: input.Question{Request: input.Request{Operation: "CREATE"}}}
	var targets []*v1alpha1.KubernetesTarget
	var evaluated struct {
		Request input.Request `json:"request"`
	}
	for _, d := range documents {
		var into any
		switch _, kind := d.Kind(); kind {
		case "":
			into = &evaluated
		case "Policy":
			patch := &policyv1alpha1.Policy{}
			if err := d.DecodeInto(patch); err != nil {
				t.Fatal(err)
			}
			alone.Spec.Parameters = patch.Spec.Parameters
			continue
		case "Namespace":
			q.Namespace = &corev1.Namespace{}
			into = q.Namespace
		case "KubernetesTarget":
			target := &v1alpha1.KubernetesTarget{}
			targets = append(targets, target)
			into = target
		default:
			q.Object = &unstructured.Unstructured{Object: d.Content}
			continue
		}
		if err := d.DecodeInto(into); err != nil {
			t.Fatal(err)
		}
	}
	q.Request.User = evaluated.Request.User
	if about == policyv1alpha1.Publish {
		last := len(targets) - 1
		q.Target, q.Existing = targets[last], targets[:last]
	} else {
		q.Targets = targets
	}
	e := engine.New(engine.Options{})
	e.Replace(context.Background(), slices.DeleteFunc(policies, func(p *policyv1alpha1.Policy) bool {
		return p.Spec.Type != policyv1alpha1.Library && p != alone
	}))
	return e.Decide(context.Background(), q)
}

// TestShippedExamples: for every shipped example, the command prints the findings of
// the engine, and its exit code agrees with the name of the example.
func TestShippedExamples(t *testing.T) {
	alone(t)
	files, err := filepath.Glob("../../../policies/*/examples/*/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("found %d examples, %v", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		about := policyv1alpha1.Scheduling
		if strings.Contains(file, "/publish/") {
			about = policyv1alpha1.Publish
		}
		t.Run(name+"/"+filepath.Base(file), func(t *testing.T) {
			if _, err := os.Stat(file); err != nil {
				t.Fatal(err)
			}
			out, errs, code := run(t, "", "eval", "-f", file, "--only", name, "--action", "Deny", "-o", "json")
			if want := map[string]int{"allowed.yaml": 0, "denied.yaml": 1}[filepath.Base(file)]; code != want {
				t.Errorf("ends with %d: %s%s", code, out, errs)
			}
			found := decode[simulationResult](t, out)
			i := slices.IndexFunc(found.Objects, func(o objectResult) bool { return o.Outcome != skipped })
			if about == policyv1alpha1.Publish {
				i = len(found.Objects) - 1
			}
			expected := found.Objects[i]
			d := decideExample(t, name, file, about)
			for _, part := range []struct {
				what string
				want []engine.Finding
				got  []findingResult
			}{{"denied", d.Denied, expected.Denied}, {"warned", d.Warnings, expected.Warnings}, {"excluded", d.Excluded, expected.Excluded}} {
				if diff := cmp.Diff(findings(part.want), part.got); diff != "" {
					t.Errorf("%s, -engine +command line:\n%s", part.what, diff)
				}
			}
			if about != policyv1alpha1.Scheduling {
				return
			}
			for _, app := range found.Applications {
				if app.Target != "" && !d.Eligible(app.Target) {
					t.Errorf("would run on %s, which is excluded", app.Target)
				}
			}
		})
	}
}
