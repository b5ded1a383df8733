package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestRightsForNative(t *testing.T) {
	const (
		with    = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/with-rbac: "true"}}, spec: {template: {spec: {serviceAccountName: checkout, containers: []}}}}`
		other   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/with-rbac: "true"}}, spec: {template: {spec: {serviceAccountName: admin, containers: []}}}}`
		without = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {spec: {serviceAccountName: checkout, containers: []}}}}`
		local   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {workload.crossplane.io/with-rbac: "true"}}, spec: {template: {spec: {serviceAccountName: checkout, containers: []}}}}`
	)
	for name, tc := range map[string]struct {
		reason     string
		now, old   string
		namespaced bool
		want       []string
	}{
		"Without":   {reason: "No Role is sent.", now: without},
		"New":       {reason: "Roles are sent.", now: with, want: []string{"escalate", "bind"}},
		"Set":       {reason: "The annotation is set.", now: with, old: without, want: []string{"escalate", "bind"}},
		"Labelled":  {reason: "The object was on the hub, where the annotation has no effect.", now: with, old: local, want: []string{"escalate", "bind"}},
		"Account":   {reason: "Other Roles are sent.", now: other, old: with, want: []string{"escalate", "bind"}},
		"Unchanged": {reason: "The same Roles are sent.", now: with, old: with},
		"Removed":   {reason: "Anybody may take rights away.", now: without, old: with},
		"Local":     {reason: "On the hub the annotation has no effect.", now: local},
		"Namespace": {reason: "The person who annotated the namespace had the rights.", now: other, namespaced: true},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := &metav1.ObjectMeta{Name: "team-a"}
			if tc.namespaced {
				namespace.Annotations = map[string]string{v1alpha1.WithRBACAnnotation: "true"}
			}
			now, old := object(t, tc.now), object(t, tc.old)
			if tc.old == "" {
				old = nil
			}
			var got []string
			for _, right := range RightsForNative(now, old, namespace) {
				got = append(got, right.Verb)
				if right.Namespace != "team-a" || right.Kind.Kind != "Role" || right.Path.String() != "metadata.annotations[workload.crossplane.io/with-rbac]" {
					t.Errorf("right %+v", right)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWithRBAC(t *testing.T) {
	annotated := func(value string) metav1.Object {
		return &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.WithRBACAnnotation: value}}
	}
	none := &metav1.ObjectMeta{}
	for name, tc := range map[string]struct {
		reason            string
		object, namespace metav1.Object
		want              bool
	}{
		"Neither":   {reason: "Roles stay on the hub.", object: none, namespace: none},
		"Object":    {reason: "The object asks for it.", object: annotated("true"), namespace: none, want: true},
		"Namespace": {reason: "The namespace asks for it.", object: none, namespace: annotated("true"), want: true},
		"OptsOut":   {reason: "The object decides for itself.", object: annotated("false"), namespace: annotated("true")},
		"Malformed": {reason: "A value without a meaning sends nothing.", object: annotated("yes"), namespace: none},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WithRBAC(tc.object, tc.namespace); got != tc.want {
				t.Errorf("got %t: %s", got, tc.reason)
			}
		})
	}
}
