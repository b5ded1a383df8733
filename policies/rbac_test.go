package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

func TestRightsForNative(t *testing.T) {
	const (
		with    = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/with-rbac: "true"}}, spec: {template: {spec: {serviceAccountName: checkout, containers: []}}}}`
		other   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/with-rbac: "true"}}, spec: {template: {spec: {serviceAccountName: admin, containers: []}}}}`
		without = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {spec: {serviceAccountName: checkout, containers: []}}}}`
		unnamed = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/with-rbac: "true"}}, spec: {template: {spec: {containers: []}}}}`
		local   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {workload.crossplane.io/with-rbac: "true"}}, spec: {template: {spec: {serviceAccountName: checkout, containers: []}}}}`
	)
	for name, tc := range map[string]struct {
		reason   string
		now, old string
		want     []string
	}{
		"Without":   {reason: "No Role is sent.", now: without},
		"New":       {reason: "Roles are sent.", now: with, want: []string{"escalate", "bind"}},
		"Set":       {reason: "The annotation is set.", now: with, old: without, want: []string{"escalate", "bind"}},
		"Labelled":  {reason: "The object was on the hub, where the annotation has no effect.", now: with, old: local, want: []string{"escalate", "bind"}},
		"Account":   {reason: "Other Roles are sent.", now: other, old: with, want: []string{"escalate", "bind"}},
		"Unchanged": {reason: "The same Roles are sent.", now: with, old: with},
		"Removed":   {reason: "Anybody may take rights away.", now: without, old: with},
		"Local":     {reason: "On the hub the annotation has no effect.", now: local},
		"Default":   {reason: "The Roles of the ServiceAccount default are not sent.", now: unnamed},
		"Named":     {reason: "Now Roles are sent.", now: with, old: unnamed, want: []string{"escalate", "bind"}},
	} {
		t.Run(name, func(t *testing.T) {
			now, old := object(t, tc.now), object(t, tc.old)
			if tc.old == "" {
				old = nil
			}
			var got []string
			for _, right := range RightsForNative(now, old, "team-a") {
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

// TestRightsForTemplate is about resources and applications that send Roles.
func TestRightsForTemplate(t *testing.T) {
	const (
		role    = `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader", "namespace": "team-a"}, "rules": []}`
		binding = `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "readers", "namespace": "team-a"}}`
		earlier = `{"apiVersion": "rbac.authorization.k8s.io/v1beta1", "kind": "RoleBinding", "metadata": {"name": "readers", "namespace": "team-a"}}`
		quota   = `{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "team-a"}}`
		other   = `{"apiVersion": "example.org/v1", "kind": "Role", "metadata": {"name": "reader", "namespace": "team-a"}}`
	)
	for name, tc := range map[string]struct {
		reason   string
		now, old string
		want     []string
	}{
		"Role":      {reason: "It has rights.", now: role, want: []string{"escalate", "bind"}},
		"Binding":   {reason: "It grants rights.", now: binding, want: []string{"escalate", "bind"}},
		"Version":   {reason: "Every version grants rights.", now: earlier, want: []string{"escalate", "bind"}},
		"Changed":   {reason: "It was another object.", now: role, old: other, want: []string{"escalate", "bind"}},
		"Unchanged": {reason: "It grants what it granted before.", now: role, old: role},
		"Other":     {reason: "A kind of the same name in another group grants nothing.", now: other},
		"Quota":     {reason: "It restricts others in the namespace.", now: quota, want: []string{"create", "update"}},
	} {
		t.Run(name, func(t *testing.T) {
			resource := func(template string) *v1alpha1.KubernetesApplicationResource {
				out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}}
				out.Spec.Template.Raw = []byte(template)
				return out
			}
			app := func(template string) *v1alpha2.KubernetesApplication {
				out := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}}
				out.Spec.ResourceTemplates = []v1alpha2.ResourceTemplate{{Metadata: v1alpha2.TemplateMeta{Name: "one"}}}
				out.Spec.ResourceTemplates[0].Spec.Template.Raw = []byte(template)
				return out
			}
			verbs := func(rights []Right, path string) []string {
				var out []string
				for _, right := range rights {
					out = append(out, right.Verb)
					if right.Namespace != "team-a" || right.Kind.Kind != "Role" && tc.now != quota || right.Path.String() != path {
						t.Errorf("right %+v", right)
					}
				}
				return out
			}
			var oldResource *v1alpha1.KubernetesApplicationResource
			var oldApp *v1alpha2.KubernetesApplication
			if tc.old != "" {
				oldResource, oldApp = resource(tc.old), app(tc.old)
			}
			if diff := cmp.Diff(tc.want, verbs(RightsForResource(resource(tc.now), oldResource), "spec.template")); diff != "" {
				t.Errorf("resource: %s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, verbs(RightsForApplication(app(tc.now), oldApp), "spec.resourceTemplates[0].spec.template")); diff != "" {
				t.Errorf("application: %s (-want +got):\n%s", tc.reason, diff)
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
