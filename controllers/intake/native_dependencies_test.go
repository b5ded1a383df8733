package intake

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestRefersOnTarget(t *testing.T) {
	resource := func(change func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
		out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu-1"}
		out.Spec.Dependencies = []v1alpha1.Dependency{{Kind: "Secret", Name: "sql"}}
		out.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.Synced, Status: metav1.ConditionTrue, ObservedGeneration: 3},
			{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue},
		}
		change(out)
		return out
	}
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.KubernetesApplicationResource)
		want   bool
	}{
		"Copied":     {reason: "The resource refers to the copy.", change: func(*v1alpha1.KubernetesApplicationResource) {}},
		"Native":     {reason: "The resource refers to the native name.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.Dependencies[0].Native = true }, want: true},
		"NotApplied": {reason: "The last change is not on the target yet.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.Status.Conditions[0].ObservedGeneration = 2 }, want: true},
		"Unreachable": {reason: "An unreachable target is not waited for.", change: func(r *v1alpha1.KubernetesApplicationResource) {
			r.Status.Conditions[0].ObservedGeneration, r.Status.Conditions[1].Status = 2, metav1.ConditionFalse
		}},
		"Unplaced": {reason: "A resource without a target refers to nothing there.", change: func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.Dependencies[0].Native, r.Spec.TargetRef = true, nil
		}},
		"Deleted": {reason: "A deleted resource refers to nothing.", change: func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.Dependencies[0].Native, r.DeletionTimestamp = true, &metav1.Time{}
		}},
		"Itself": {reason: "The dependency's own resource does not refer to it.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.Dependencies = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := refersOnTarget(resource(tc.change), "Secret", "sql"); got != tc.want {
				t.Errorf("refers = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestWaitsForSender(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "sql", "namespace": "team-a"}}}
	needs := func(change func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
		out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web-deployment"}}
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: "dev"}
		out.Spec.Dependencies = []v1alpha1.Dependency{{Kind: "Secret", Name: "sql", Shared: true}}
		out.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TargetReachable, Status: metav1.ConditionTrue}}
		change(out)
		return out
	}
	same := func(*v1alpha1.KubernetesApplicationResource) {}
	for name, tc := range map[string]struct {
		reason   string
		resource *v1alpha1.KubernetesApplicationResource
		hub      []client.Object
		want     bool
	}{
		"Shared":      {reason: "The object stays when the label is removed.", resource: needs(same), hub: []client.Object{senderOf(same)}},
		"NoSender":    {reason: "Its resource is about to be made.", resource: needs(same), want: true},
		"NotSent":     {reason: "Its resource is about to share the object.", resource: needs(same), hub: []client.Object{senderOf(func(r *v1alpha1.KubernetesApplicationResource) { r.Status.RemoteUID = "" })}, want: true},
		"Copied":      {reason: "The Pods refer to a copy.", resource: needs(func(r *v1alpha1.KubernetesApplicationResource) { r.Spec.Dependencies[0].Shared = false })},
		"Unreachable": {reason: "An unreachable target is not waited for.", resource: needs(func(r *v1alpha1.KubernetesApplicationResource) { r.Status.Conditions[0].Status = metav1.ConditionFalse })},
		"Deleted":     {reason: "A deleted resource needs nothing.", resource: needs(func(r *v1alpha1.KubernetesApplicationResource) { r.DeletionTimestamp = &metav1.Time{} })},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := waitsForSender(t.Context(), hubWithResources(t, tc.hub...), tc.resource, secret)
			if err != nil || got != tc.want {
				t.Errorf("waits = %t, want %t (%v): %s", got, tc.want, err, tc.reason)
			}
		})
	}
}
