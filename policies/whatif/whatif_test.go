package whatif

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// asking is an engine with one policy of each type.
func asking(t *testing.T, scheduling, publish string) *engine.Engine {
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
	out.Spec.ConnectionSecretRef = &corev1.LocalObjectReference{Name: name}
	Reach(&out)
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

func TestRehearse(t *testing.T) {
	old := deployment("web", "")
	cases := map[string]struct {
		reason              string
		scheduling, publish string
		world               World
		objects             []*unstructured.Unstructured
		want                []string
	}{
		"Excluded": {
			reason:     "What is excluded is no choice, and why is told.",
			scheduling: avoidsA, world: World{Targets: []v1alpha1.KubernetesTarget{target("a"), target("b")}},
			objects: []*unstructured.Unstructured{deployment("web", "")},
			want:    []string{"Deployment shop/web ok", "shop/default on b, not a, which is excluded by policy scheduling: Avoided: is avoided"},
		},
		"NewInPlaced": {
			reason:     "What joins an application on an excluded target cannot go elsewhere.",
			scheduling: avoidsA, world: World{Targets: []v1alpha1.KubernetesTarget{target("a"), target("b")}, Applications: []*v1alpha2.KubernetesApplication{placed("default", "a")}},
			objects: []*unstructured.Unstructured{deployment("web", "")},
			want:    []string{"Deployment shop/web denied: policy scheduling: Avoided: target a: is avoided"},
		},
		"OldInPlaced": {
			reason:     "What runs there already stays, with a warning.",
			scheduling: avoidsA, world: World{Targets: []v1alpha1.KubernetesTarget{target("a")}, Applications: []*v1alpha2.KubernetesApplication{placed("default", "a")}, Objects: []*unstructured.Unstructured{old}},
			objects: []*unstructured.Unstructured{deployment("web", "")},
			want:    []string{"Deployment shop/web ok, warned: policy scheduling: Avoided: target a: is avoided", "shop/default runs on a"},
		},
		"DeniedIsNoMember": {
			reason:     "What is denied goes nowhere, and the rest goes without it.",
			scheduling: noWeb, world: World{Targets: []v1alpha1.KubernetesTarget{target("a")}},
			objects: []*unstructured.Unstructured{deployment("web", "front"), deployment("jobs", "back")},
			want:    []string{"Deployment shop/web denied: policy scheduling: Web: no web", "Deployment shop/jobs ok", "shop/back on a"},
		},
		"WhateverOrder": {
			reason: "Namespaces and targets count, whatever the order in the file.", scheduling: updates,
			objects: []*unstructured.Unstructured{
				deployment("web", ""),
				object("workload.crossplane.io/v1alpha1", "KubernetesTarget", "a", map[string]any{"spec": map[string]any{"connectionSecretRef": map[string]any{"name": "a"}}}),
				object("v1", "Namespace", "shop", map[string]any{"metadata": map[string]any{"labels": map[string]any{"env": "prod"}}}),
			},
			want: []string{"Deployment shop/web ok, warned: policy scheduling: Asked: CREATE in shop, env prod, targets 1", "KubernetesTarget shop/a ok", "Namespace shop skipped", "shop/default on a"},
		},
		"Update": {
			reason: "What is there is updated.", scheduling: updates, world: World{Objects: []*unstructured.Unstructured{old}},
			objects: []*unstructured.Unstructured{deployment("web", "")},
			want:    []string{"Deployment shop/web ok, warned: policy scheduling: Asked: UPDATE in shop, env none, targets 0", "shop/default nowhere"},
		},
		"Spread": {
			reason:  "Each application finds what the one before has put there.",
			world:   World{Targets: []v1alpha1.KubernetesTarget{target("a"), target("b")}},
			objects: []*unstructured.Unstructured{deployment("x", "x"), deployment("y", "y"), deployment("z", "z")},
			want:    []string{"Deployment shop/x ok", "Deployment shop/y ok", "Deployment shop/z ok", "shop/x on a", "shop/y on b", "shop/z on a"},
		},
		"Publish": {
			reason: "A second target finds the first.", publish: onlyOne,
			objects: []*unstructured.Unstructured{
				object("workload.crossplane.io/v1alpha1", "KubernetesTarget", "a", map[string]any{"spec": map[string]any{"connectionSecretRef": map[string]any{"name": "a"}}}),
				object("workload.crossplane.io/v1alpha1", "KubernetesTarget", "b", map[string]any{"spec": map[string]any{"connectionSecretRef": map[string]any{"name": "b"}}}),
			},
			want: []string{"KubernetesTarget shop/a ok", "KubernetesTarget shop/b denied: policy publish: Second: there is one"},
		},
		"Resource": {
			reason: "A resource of its own is asked about by its template.", scheduling: noWeb,
			world: World{Targets: []v1alpha1.KubernetesTarget{target("a")}},
			objects: []*unstructured.Unstructured{object("workload.crossplane.io/v1alpha1", "KubernetesApplicationResource", "r", map[string]any{
				"spec": map[string]any{"template": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "shop"}}},
			})},
			want: []string{"ConfigMap shop/web denied: policy scheduling: Web: no web"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := asking(t, tc.scheduling, tc.publish)
			found, err := Cases(&tc.world, input.Request{}, tc.objects...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, story(Rehearse(context.Background(), e, &tc.world, found))); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// story tells a rehearsal, a line for each object and each application.
func story(r Rehearsal) []string {
	var out []string
	for _, a := range r.Answers {
		line := Title(a.Object) + " ok"
		switch {
		case a.Denied() && len(a.Refused) > 0:
			line = Title(a.Object) + " refused: " + a.Refused.ToAggregate().Error()
		case a.Denied():
			line = Title(a.Object) + " denied: " + a.Decision.Denied[0].String()
		case a.Decision == nil:
			line = Title(a.Object) + " skipped"
		case len(a.Decision.Warnings) > 0:
			line += ", warned: " + a.Decision.Warnings[0].String()
		}
		out = append(out, line)
	}
	for _, p := range r.Places {
		line := fmt.Sprintf("%s/%s on %s", p.Namespace, p.Application, p.Target)
		switch {
		case p.Runs:
			line = fmt.Sprintf("%s/%s runs on %s", p.Namespace, p.Application, p.Target)
		case p.Target == "":
			line = fmt.Sprintf("%s/%s nowhere", p.Namespace, p.Application)
		}
		for _, e := range p.Exclusions {
			line += fmt.Sprintf(", not %s, which %s", e.Target, e.Why)
		}
		out = append(out, line)
	}
	return out
}

// An audit counts by policy what it would refuse today: where it runs, it would
// not run, or nowhere.
func TestAudit(t *testing.T) {
	w := &World{
		Targets:      []v1alpha1.KubernetesTarget{target("a"), target("b")},
		Applications: []*v1alpha2.KubernetesApplication{placed("on-a", "a"), placed("on-b", "b")},
		Objects:      []*unstructured.Unstructured{deployment("web", "on-b"), deployment("x", "on-a"), deployment("y", "on-b"), deployment("z", "open")},
	}
	w.Objects[3].SetAnnotations(map[string]string{v1alpha1.TargetSelectorAnnotation: "name=a"})
	got, err := Audit(context.Background(), asking(t, avoidsA+noWeb, onlyOne), w, w.Objects...)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, v := range got["scheduling"].Violations {
		found = append(found, v.Object+" "+v.Code)
	}
	want := []string{"Deployment shop/web Web", "Deployment shop/x Avoided", "Deployment shop/z Avoided"}
	if diff := cmp.Diff(want, found); diff != "" || got["scheduling"].Asked != 4 || got["publish"] != nil {
		t.Errorf("asked about %d, -want +got:\n%s", got["scheduling"].Asked, diff)
	}
}

// What cannot be read is an error that names it.
func TestCasesThatAreNone(t *testing.T) {
	for name, o := range map[string]*unstructured.Unstructured{
		"Target":      object("workload.crossplane.io/v1alpha1", "KubernetesTarget", "a", map[string]any{"spec": map[string]any{"secret": "a"}}),
		"Application": object("workload.crossplane.io/v1alpha2", "KubernetesApplication", "a", map[string]any{"spec": map[string]any{"templates": "a"}}),
		"Namespace":   object("v1", "Namespace", "a", map[string]any{"spec": "a"}),
	} {
		if _, err := Cases(&World{}, input.Request{}, o); err == nil || !strings.HasPrefix(err.Error(), Title(o)+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
