package simulate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// engineWith returns an engine with one policy of each type.
func engineWith(t *testing.T, scheduling, publish string) *engine.Engine {
	t.Helper()
	e := engine.New(engine.Options{})
	for kind, rules := range map[policyv1alpha1.PolicyType]string{policyv1alpha1.Scheduling: scheduling, policyv1alpha1.Publish: publish} {
		if rules == "" {
			continue
		}
		name := strings.ToLower(string(kind))
		p := &policyv1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1alpha1.PolicySpec{
			Type: kind, Modules: map[string]string{"rules.rego": "package " + name + ".rules\n\nimport rego.v2\n\n" + rules},
		}}
		if err := e.Apply(context.Background(), p).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func target(name string) v1alpha1.KubernetesTarget {
	out := v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"name": name}}}
	out.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: name}
	MarkReachable(&out)
	return out
}

func object(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	for key, value := range more {
		o.Object[key] = value
	}
	o.SetName(name)
	if kind != "Namespace" {
		o.SetNamespace("shop")
	}
	return o
}

func deployment(name, application string) *unstructured.Unstructured {
	o := object("apps/v1", "Deployment", name, nil)
	o.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
	if application != "" {
		o.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote, v1alpha1.ApplicationLabel: application})
	}
	return o
}

func placed(name, target string) *v1alpha2.KubernetesApplication {
	return &v1alpha2.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha2.KubernetesApplicationSpec{TargetRef: &v1alpha1.TargetReference{Name: target}},
	}
}

const (
	avoidsA = `exclude contains {"target": "a", "code": "Avoided", "msg": "is avoided"}` + "\n"
	noWeb   = `deny contains {"code": "Web", "msg": "no web"} if input.object.metadata.name == "web"` + "\n"
	updates = `warn contains {"code": "Asked", "msg": sprintf("%s in %s, env %s, targets %d", [input.request.operation, input.request.namespace, object.get(input.namespace.metadata.labels, "env", "none"), count(input.targets)])}` + "\n"
	onlyOne = `deny contains {"code": "Second", "msg": "there is one"} if count(input.existing) > 0` + "\n"
)

func TestSimulate(t *testing.T) {
	old := deployment("web", "")
	cases := map[string]struct {
		reason              string
		scheduling, publish string
		snapshot            Snapshot
		objects             []*unstructured.Unstructured
		want                []string
	}{
		"Excluded": {
			reason:     "The report names an excluded target and the reason.",
			scheduling: avoidsA, snapshot: Snapshot{Targets: []v1alpha1.KubernetesTarget{target("a"), target("b")}},
			objects: []*unstructured.Unstructured{deployment("web", "")},
			want:    []string{"Deployment shop/web ok", "shop/default on b, not a, which is excluded by policy scheduling: Avoided: is avoided"},
		},
		"NewInPlaced": {
			reason:     "An object cannot join an application on an excluded target.",
			scheduling: avoidsA, snapshot: Snapshot{Targets: []v1alpha1.KubernetesTarget{target("a"), target("b")}, Applications: []*v1alpha2.KubernetesApplication{placed("default", "a")}},
			objects: []*unstructured.Unstructured{deployment("web", "")},
			want:    []string{"Deployment shop/web denied: policy scheduling: Avoided: target a: is avoided"},
		},
		"OldInPlaced": {
			reason:     "An object that runs on an excluded target stays, with a warning.",
			scheduling: avoidsA, snapshot: Snapshot{Targets: []v1alpha1.KubernetesTarget{target("a")}, Applications: []*v1alpha2.KubernetesApplication{placed("default", "a")}, Objects: []*unstructured.Unstructured{old}},
			objects: []*unstructured.Unstructured{deployment("web", "")},
			want:    []string{"Deployment shop/web ok, warned: policy scheduling: Avoided: target a: is avoided", "shop/default runs on a"},
		},
		"DeniedIsNoMember": {
			reason:     "A denied object is left out, and the others are placed.",
			scheduling: noWeb, snapshot: Snapshot{Targets: []v1alpha1.KubernetesTarget{target("a")}},
			objects: []*unstructured.Unstructured{deployment("web", "front"), deployment("jobs", "back")},
			want:    []string{"Deployment shop/web denied: policy scheduling: Web: no web", "Deployment shop/jobs ok", "shop/back on a"},
		},
		"WhateverOrder": {
			reason: "Namespaces and targets of a file count in any order.", scheduling: updates,
			objects: []*unstructured.Unstructured{
				deployment("web", ""),
				object("workload.crossplane.io/v1alpha1", "KubernetesTarget", "a", map[string]any{"spec": map[string]any{"connectionSecretRef": map[string]any{"name": "a"}}}),
				object("v1", "Namespace", "shop", map[string]any{"metadata": map[string]any{"labels": map[string]any{"env": "prod"}}}),
			},
			want: []string{"Deployment shop/web ok, warned: policy scheduling: Asked: CREATE in shop, env prod, targets 1", "KubernetesTarget shop/a ok", "Namespace shop skipped", "shop/default on a"},
		},
		"Update": {
			reason: "An existing object is updated.", scheduling: updates, snapshot: Snapshot{Objects: []*unstructured.Unstructured{old}},
			objects: []*unstructured.Unstructured{deployment("web", "")},
			want:    []string{"Deployment shop/web ok, warned: policy scheduling: Asked: UPDATE in shop, env none, targets 0", "shop/default nowhere"},
		},
		"Spread": {
			reason:   "An application counts those that were placed before.",
			snapshot: Snapshot{Targets: []v1alpha1.KubernetesTarget{target("a"), target("b")}},
			objects:  []*unstructured.Unstructured{deployment("x", "x"), deployment("y", "y"), deployment("z", "z")},
			want:     []string{"Deployment shop/x ok", "Deployment shop/y ok", "Deployment shop/z ok", "shop/x on a", "shop/y on b", "shop/z on a"},
		},
		"Publish": {
			reason: "The second target of a file sees the first.", publish: onlyOne,
			objects: []*unstructured.Unstructured{
				object("workload.crossplane.io/v1alpha1", "KubernetesTarget", "a", map[string]any{"spec": map[string]any{"connectionSecretRef": map[string]any{"name": "a"}}}),
				object("workload.crossplane.io/v1alpha1", "KubernetesTarget", "b", map[string]any{"spec": map[string]any{"connectionSecretRef": map[string]any{"name": "b"}}}),
			},
			want: []string{"KubernetesTarget shop/a ok", "KubernetesTarget shop/b denied: policy publish: Second: there is one"},
		},
		"Resource": {
			reason: "A handwritten resource is checked by its template.", scheduling: noWeb,
			snapshot: Snapshot{Targets: []v1alpha1.KubernetesTarget{target("a")}},
			objects: []*unstructured.Unstructured{object("workload.crossplane.io/v1alpha1", "KubernetesApplicationResource", "r", map[string]any{
				"spec": map[string]any{"template": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "shop"}}},
			})},
			want: []string{"ConfigMap shop/web denied: policy scheduling: Web: no web"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := engineWith(t, tc.scheduling, tc.publish)
			found, err := Cases(&tc.snapshot, input.Request{}, tc.objects...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, lines(Run(context.Background(), e, &tc.snapshot, found))); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// lines formats a report, with one line for each object and each application.
func lines(r Report) []string {
	var out []string
	for _, a := range r.Results {
		line := DisplayName(a.Object) + " ok"
		switch {
		case a.Denied() && len(a.Refused) > 0:
			line = DisplayName(a.Object) + " refused: " + a.Refused.ToAggregate().Error()
		case a.Denied():
			line = DisplayName(a.Object) + " denied: " + a.Decision.Denied[0].String()
		case a.Decision == nil:
			line = DisplayName(a.Object) + " skipped"
		case len(a.Decision.Warnings) > 0:
			line += ", warned: " + a.Decision.Warnings[0].String()
		}
		out = append(out, line)
	}
	for _, p := range r.Placements {
		line := fmt.Sprintf("%s/%s on %s", p.Namespace, p.Application, p.Target)
		switch {
		case p.Running:
			line = fmt.Sprintf("%s/%s runs on %s", p.Namespace, p.Application, p.Target)
		case p.Target == "":
			line = fmt.Sprintf("%s/%s nowhere", p.Namespace, p.Application)
		}
		for _, e := range p.Exclusions {
			line += fmt.Sprintf(", not %s, which %s", e.Target, e.Reason)
		}
		out = append(out, line)
	}
	return out
}

// TestCasesThatAreNone: the error names an object that cannot be read.
func TestCasesThatAreNone(t *testing.T) {
	for name, o := range map[string]*unstructured.Unstructured{
		"Target":      object("workload.crossplane.io/v1alpha1", "KubernetesTarget", "a", map[string]any{"spec": map[string]any{"secret": "a"}}),
		"Application": object("workload.crossplane.io/v1alpha2", "KubernetesApplication", "a", map[string]any{"spec": map[string]any{"templates": "a"}}),
		"Namespace":   object("v1", "Namespace", "a", map[string]any{"spec": "a"}),
	} {
		if _, err := Cases(&Snapshot{}, input.Request{}, o); err == nil || !strings.HasPrefix(err.Error(), DisplayName(o)+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
