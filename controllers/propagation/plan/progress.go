package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// IsProgress tells whether two statuses differ only in the progress of a rollout: in both
// of them the object is not ready, and has not failed.
func IsProgress(before, after *v1alpha1.KubernetesApplicationResourceStatus) bool {
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.Ready), meta.FindStatusCondition(after.Conditions, v1alpha1.Ready)
	for _, ready := range []*metav1.Condition{was, is} {
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonProgressing {
			return false
		}
	}
	rest := after.DeepCopy()
	rest.Remote, rest.ObservedHubGeneration, rest.Observed, rest.Ownership = before.Remote, before.ObservedHubGeneration, before.Observed, before.Ownership
	meta.FindStatusCondition(rest.Conditions, v1alpha1.Ready).Message = was.Message
	return equality.Semantic.DeepEqual(*before, *rest) && !equality.Semantic.DeepEqual(*before, *after)
}

// IsStarting tells whether a status is the first one of a resource, and only says that the
// object waits for other resources that are being applied.
func IsStarting(before, after *v1alpha1.KubernetesApplicationResourceStatus) bool {
	synced := meta.FindStatusCondition(after.Conditions, v1alpha1.Synced)
	return meta.FindStatusCondition(before.Conditions, v1alpha1.Synced) == nil &&
		synced != nil && synced.Status == metav1.ConditionFalse && synced.Reason == v1alpha1.ReasonApplying
}
