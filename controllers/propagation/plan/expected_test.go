package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestExpected(t *testing.T) {
	synced := func(status metav1.ConditionStatus, reason string) func(*v1alpha1.KubernetesApplicationResource) {
		return func(r *v1alpha1.KubernetesApplicationResource) {
			r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.Synced, Status: status, Reason: reason}}
		}
	}
	applied := func(r *v1alpha1.KubernetesApplicationResource) { r.Status.RemoteUID, r.Status.Target = "o1", "eu-1" }
	isApplied := synced(metav1.ConditionTrue, v1alpha1.ReasonApplied)
	adopts := func(r *v1alpha1.KubernetesApplicationResource) {
		r.Annotations = map[string]string{v1alpha1.AdoptAnnotation: string(v1alpha1.AdoptIfUnowned)}
	}
	for name, tc := range map[string]struct {
		reason string
		edits  []func(*v1alpha1.KubernetesApplicationResource)
		want   State
		uid    types.UID
	}{
		"New":      {reason: "Before the first apply there is no object.", want: Absent},
		"Waiting":  {reason: "While a resource waits there is no object.", edits: []func(*v1alpha1.KubernetesApplicationResource){synced(metav1.ConditionFalse, v1alpha1.ReasonApplying)}, want: Absent},
		"Refused":  {reason: "After a refusal there is no object.", edits: []func(*v1alpha1.KubernetesApplicationResource){synced(metav1.ConditionFalse, v1alpha1.ReasonRefused)}, want: Absent},
		"Foreign":  {reason: "An object of another owner may be deleted by now.", edits: []func(*v1alpha1.KubernetesApplicationResource){synced(metav1.ConditionFalse, v1alpha1.ReasonOwnershipConflict)}},
		"Conflict": {reason: "A conflict of fields may have ended by now.", edits: []func(*v1alpha1.KubernetesApplicationResource){synced(metav1.ConditionFalse, v1alpha1.ReasonFieldConflict)}},
		"Adopts":   {reason: "An object that may be adopted is read.", edits: []func(*v1alpha1.KubernetesApplicationResource){adopts}},
		"Applied":  {reason: "An applied object exists.", edits: []func(*v1alpha1.KubernetesApplicationResource){applied, isApplied}, want: Drifted, uid: "o1"},
		"Lost":     {reason: "After a failed apply the object may be deleted.", edits: []func(*v1alpha1.KubernetesApplicationResource){applied, synced(metav1.ConditionFalse, v1alpha1.ReasonRefused)}},
		"Elsewhere": {reason: "The status describes another target.", edits: []func(*v1alpha1.KubernetesApplicationResource){applied, isApplied, func(r *v1alpha1.KubernetesApplicationResource) {
			r.Status.Target = "eu-2"
		}}},
		"Moves": {reason: "The status of a moving resource describes the old target.", edits: []func(*v1alpha1.KubernetesApplicationResource){func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: "eu-2"}
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			desired := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "shop"}}}
			resource := &v1alpha1.KubernetesApplicationResource{}
			for _, edit := range tc.edits {
				edit(resource)
			}
			state, observed := Expected(desired, resource, "eu-1")
			if state != tc.want {
				t.Errorf("state %q, want %q: %s", state, tc.want, tc.reason)
			}
			var want *unstructured.Unstructured
			if tc.uid != "" {
				want = desired.DeepCopy()
				want.SetUID(tc.uid)
			}
			if diff := cmp.Diff(want, observed); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
