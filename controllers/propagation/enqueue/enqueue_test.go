package enqueue

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestNeedsReconcile(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.KubernetesApplicationResource)
		want   bool
	}{
		"Status":  {reason: "A change of status does not enqueue the resource.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.Status.State = v1alpha1.StateSubmitted }},
		"Version": {reason: "A new resource version alone does not enqueue the resource.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.ResourceVersion = "2" }},
		"Spec":    {reason: "A new generation enqueues the resource.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.Generation = 2 }, want: true},
		"Deletion": {reason: "A deletion enqueues the resource.", change: func(r *v1alpha1.KubernetesApplicationResource) {
			r.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
		}, want: true},
		"Orphaned": {reason: "The loss of its owner enqueues the resource.", change: func(r *v1alpha1.KubernetesApplicationResource) { r.OwnerReferences = nil }, want: true},
		"Foreground": {reason: "Foreground deletion enqueues the resource.", change: func(r *v1alpha1.KubernetesApplicationResource) {
			r.Finalizers = []string{metav1.FinalizerDeleteDependents}
		}, want: true},
		"Counted": {reason: "A new number of its content enqueues the resource.", change: func(r *v1alpha1.KubernetesApplicationResource) {
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.HubGenerationAnnotation, "7")
		}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.KubernetesApplicationResource{}
			before.Generation = 1
			before.OwnerReferences = []metav1.OwnerReference{{Name: "web"}}
			after := before.DeepCopy()
			tc.change(after)
			if got := needsReconcile(before, after); got != tc.want {
				t.Errorf("changed = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}
