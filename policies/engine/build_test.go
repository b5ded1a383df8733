package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

// header begins the module of a Scheduling policy.
const header = "package scheduling.example\n\nimport rego.v2\n\n"

type option func(*policyv1alpha1.Policy)

// policy returns a Scheduling policy with one module.
func policy(name, body string, options ...option) *policyv1alpha1.Policy {
	p := &policyv1alpha1.Policy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1alpha1.PolicySpec{
			Type: policyv1alpha1.Scheduling, Modules: map[string]string{name + ".rego": header + body},
		},
	}
	for _, option := range options {
		option(p)
	}
	return p
}

func library(name, body string) *policyv1alpha1.Policy {
	return policy("lib-"+name, "", func(p *policyv1alpha1.Policy) {
		p.Spec.Type = policyv1alpha1.Library
		p.Spec.Modules = map[string]string{name + ".rego": "package lib." + name + "\n\nimport rego.v2\n\n" + body}
	})
}

func action(a policyv1alpha1.Action) option {
	return func(p *policyv1alpha1.Policy) { p.Spec.Action = a }
}

func onFailure(f policyv1alpha1.FailurePolicy) option {
	return func(p *policyv1alpha1.Policy) { p.Spec.FailurePolicy = f }
}

func weight(w int32) option {
	return func(p *policyv1alpha1.Policy) { p.Spec.Weight = &w }
}

func parameters(values map[string]any) option {
	return func(p *policyv1alpha1.Policy) {
		raw, err := json.Marshal(values)
		if err != nil {
			panic(err)
		}
		p.Spec.Parameters = &apiextensionsv1.JSON{Raw: raw}
	}
}

func match(m policyv1alpha1.PolicyMatch) option {
	return func(p *policyv1alpha1.Policy) { p.Spec.Match = &m }
}

func module(file, source string) option {
	return func(p *policyv1alpha1.Policy) { p.Spec.Modules[file] = source }
}

// denies returns a rule that denies every object with a code.
func denies(code string) string {
	return fmt.Sprintf("deny contains {\"code\": %q, \"msg\": \"no\"}\n", code)
}

func deployment(labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{
			"replicas": int64(2),
			"template": map[string]any{"spec": map[string]any{"containers": []any{
				map[string]any{"name": "app", "image": "registry.example.org/app:v1"},
			}}},
		},
	}}
	o.SetLabels(labels)
	return o
}

func target(name string, labels map[string]string) *workloadv1alpha1.KubernetesTarget {
	return &workloadv1alpha1.KubernetesTarget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: "1", ResourceVersion: "1", Labels: labels},
		Spec:       workloadv1alpha1.KubernetesTargetSpec{ConnectionSecretRef: &workloadv1alpha1.SecretReference{Name: name}},
		Status: workloadv1alpha1.KubernetesTargetStatus{
			ServerVersion: "v1.36.3",
			Conditions:    []metav1.Condition{{Type: "TargetReachable", Status: "True", Reason: "Reachable"}},
		},
	}
}

func scheduling(targets ...*workloadv1alpha1.KubernetesTarget) Question {
	return Question{Type: policyv1alpha1.Scheduling, Question: input.Question{
		Request:   input.Request{Operation: "CREATE", User: input.User{Username: "ada", Groups: []string{"dev"}}},
		Object:    deployment(map[string]string{"app": "web"}),
		Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}},
		Targets:   targets,
	}}
}

// apply applies policies without problems to an engine.
func apply(t testing.TB, e *Engine, policies ...*policyv1alpha1.Policy) {
	t.Helper()
	for _, p := range policies {
		if err := e.Apply(context.Background(), p).Err(); err != nil {
			t.Fatalf("policy %s: %v", p.Name, err)
		}
	}
}
