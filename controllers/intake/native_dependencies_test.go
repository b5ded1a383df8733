package intake

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
