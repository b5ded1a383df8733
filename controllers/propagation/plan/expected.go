package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Expected returns the state of an object on a target by the status of its resource,
// without a request to the target. The state is "" if the object has to be read. observed
// is nil, or has only the name and the UID of the object.
//
// An apply for a wrong expected state changes nothing: the target rejects the request of
// ApplyRequest if an absent object exists, or if an existing object has another UID. See
// IsUnexpected.
func Expected(desired *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource, target string) (state State, observed *unstructured.Unstructured) {
	if resource.Spec.LeavingTargetRef != nil {
		return "", nil // the status describes the object on the other target
	}
	synced := meta.FindStatusCondition(resource.Status.Conditions, v1alpha1.Synced)
	uid := resource.Status.RemoteUID
	switch {
	case uid == "" && policies.AdoptionPolicyOf(resource) == v1alpha1.AdoptNever && !foundOther(synced):
		return Absent, nil
	case uid != "" && resource.Status.Target == target && synced != nil && synced.Status == metav1.ConditionTrue:
		observed = &unstructured.Unstructured{}
		observed.SetGroupVersionKind(desired.GroupVersionKind())
		observed.SetNamespace(desired.GetNamespace())
		observed.SetName(desired.GetName())
		observed.SetUID(uid)
		return Drifted, observed
	}
	return "", nil
}

// foundOther tells whether the last check found an object of another owner on the target.
func foundOther(synced *metav1.Condition) bool {
	return synced != nil && (synced.Reason == v1alpha1.ReasonOwnershipConflict || synced.Reason == v1alpha1.ReasonFieldConflict)
}
