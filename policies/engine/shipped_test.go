package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

func shipped(t testing.TB) []*policyv1alpha1.Policy {
	t.Helper()
	policies, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return policies
}

// TestShippedPolicies checks the shipped policies like policies of users.
func TestShippedPolicies(t *testing.T) {
	e := New(Options{})
	e.Replace(context.Background(), shipped(t))
	for _, state := range e.Policies() {
		t.Run(state.Policy, func(t *testing.T) {
			if err := state.Err(); err != nil {
				t.Fatal(err)
			}
			for _, warning := range state.Warnings {
				t.Errorf("warning: %s", warning)
			}
			if state.Summary.Passed < 2 || state.Summary.Coverage < 90 {
				t.Errorf("tests: %+v", *state.Summary)
			}
		})
	}
}

// TestShippedPoliciesCanBeEdited: kubectl edit shows every module line by line.
func TestShippedPoliciesCanBeEdited(t *testing.T) {
	for _, p := range shipped(t) {
		for file, source := range p.Spec.Modules {
			shown, err := sigsyaml.Marshal(map[string]string{"module": source})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(shown), "module: |") {
				t.Errorf("%s of policy %s is shown as %.60s…", file, p.Name, shown)
			}
		}
	}
}

// TestShippedPoliciesWithPlainOPA: opa test works on the directories, without Portico's
// schema, capabilities and compiler.
func TestShippedPoliciesWithPlainOPA(t *testing.T) {
	modules := map[string]*ast.Module{}
	for _, p := range shipped(t) {
		for file, source := range p.Spec.Modules {
			parsed, err := ast.ParseModuleWithOpts(p.Name+"/"+file, source, ast.ParserOptions{RegoVersion: ast.RegoV1})
			if err != nil {
				t.Fatal(err)
			}
			modules[p.Name+"/"+file] = parsed
		}
	}
	results, err := tester.NewRunner().SetModules(modules).RunTests(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for result := range results {
		count++
		if !result.Pass() {
			t.Errorf("%v: %v", result.Location, result)
		}
	}
	if count < 40 {
		t.Errorf("only %d tests were found", count)
	}
}

// manifest is the manifest of an example.
type manifest struct {
	question   Question
	parameters *policyv1alpha1.Policy
}

func readExample(t *testing.T, file string, about policyv1alpha1.PolicyType) manifest {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	x := manifest{question: Question{Type: about, Question: input.Question{Request: input.Request{Operation: "CREATE"}}}}
	var targets []*workloadv1alpha1.KubernetesTarget
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var document map[string]any
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		into := func(out any) {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(document, out, true); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		switch document["kind"] {
		case nil:
			request, _ := document["request"].(map[string]any)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(request, &x.question.Request, true); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		case "Policy":
			x.parameters = &policyv1alpha1.Policy{}
			into(x.parameters)
		case "Namespace":
			x.question.Namespace = &corev1.Namespace{}
			into(x.question.Namespace)
		case "KubernetesTarget":
			target := &workloadv1alpha1.KubernetesTarget{}
			into(target)
			targets = append(targets, target)
		default:
			x.question.Object = &unstructured.Unstructured{Object: document}
		}
	}
	if about == policyv1alpha1.Publish {
		last := len(targets) - 1
		x.question.Target, x.question.Existing = targets[last], targets[:last]
	} else {
		x.question.Targets = targets
	}
	return x
}

// TestShippedExamples: every policy has an example that it allows, and one that it
// denies or for which it excludes all targets.
func TestShippedExamples(t *testing.T) {
	e := New(Options{})
	all := shipped(t)
	e.Replace(context.Background(), slices.DeleteFunc(slices.Clone(all), func(p *policyv1alpha1.Policy) bool {
		return p.Spec.Type != policyv1alpha1.Library
	}))
	for _, p := range all {
		if p.Spec.Type == policyv1alpha1.Library {
			continue
		}
		for _, decision := range []string{"allowed", "denied"} {
			t.Run(p.Name+"/"+decision, func(t *testing.T) {
				if p.Name == "spread" && decision == "denied" {
					return // this policy only scores targets
				}
				x := readExample(t, filepath.Join("..", strings.ToLower(string(p.Spec.Type)), "examples", p.Name, decision+".yaml"), p.Spec.Type)
				alone := p.DeepCopy()
				alone.Spec.Action = policyv1alpha1.Deny
				if x.parameters != nil {
					alone.Spec.Parameters = x.parameters.Spec.Parameters
				}
				apply(t, e, alone)
				defer e.Remove(context.Background(), alone.Name)
				d := e.Decide(context.Background(), x.question)
				if len(d.Evaluations) != 1 || d.Evaluations[0].Err != nil {
					t.Fatalf("evaluations: %+v", d.Evaluations)
				}
				runs := d.Allowed()
				if len(x.question.Targets) > 0 {
					runs = runs && slices.ContainsFunc(x.question.Targets, func(target *workloadv1alpha1.KubernetesTarget) bool { return d.Eligible(target.Name) })
				}
				if runs != (decision == "allowed") {
					t.Errorf("denied %v, excluded %v", d.Denied, d.Excluded)
				}
			})
		}
	}
}

// TestShippedPoliciesAllowByDefault: the shipped policies with their defaults deny
// nothing.
func TestShippedPoliciesAllowByDefault(t *testing.T) {
	e := New(Options{})
	e.Replace(context.Background(), shipped(t))
	plain := target("dev", map[string]string{"env": "dev"})
	for name, q := range map[string]Question{
		"Deployment": scheduling(plain),
		"Service": {Type: policyv1alpha1.Scheduling, Question: input.Question{
			Object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": "shop"},
				"spec": map[string]any{"type": "LoadBalancer"},
			}},
			Targets: []*workloadv1alpha1.KubernetesTarget{plain, target("prod", map[string]string{"env": "prod"})},
		}},
		"Target": {Type: policyv1alpha1.Publish, Question: input.Question{
			Target: plain, Existing: []*workloadv1alpha1.KubernetesTarget{target("again", map[string]string{"env": "prod"})},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := e.Decide(context.Background(), q)
			if len(d.Denied)+len(d.Excluded)+len(d.Warnings)+len(d.Scores)+len(d.Required) > 0 {
				t.Errorf("%+v", d)
			}
		})
	}
}
