package scope

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// WaitForTargetToDelete reports that a deletion waits for the target. For an
// unreachable target, which may never return, the message names the alternative.
func (s *Scope) WaitForTargetToDelete() {
	purpose := "to delete"
	if OrphansObject(s.Resource) {
		purpose = "to remove Portico's marks from"
	}
	message := fmt.Sprintf("waiting for target %s, %s %s there", s.Target.Name, purpose, policies.RemoteObjectName(s.Resource))
	if !meta.IsStatusConditionFalse(s.Resource.Status.Conditions, v1alpha1.TargetReachable) { // the target is probed in a moment
		s.Resource.Status.State = v1alpha1.StateDeleting
		s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonWithdrawing, message)
		return
	}
	s.ReportDeletionWait(fmt.Sprintf("%s; if the target never returns, release the object: kubectl annotate kubernetesapplicationresource %s %s=true",
		message, s.Resource.Name, v1alpha1.ReleaseAnnotation))
}

// WaitForTarget ends the reconcile. The next event of the target enqueues each resource
// on it. The last observed status remains.
func (s *Scope) WaitForTarget() error {
	if s.Resource.DeletionTimestamp != nil {
		s.WaitForTargetToDelete()
		return reconciler.ErrDone
	}
	if s.Resource.Status.State == "" {
		s.Resource.Status.State = v1alpha1.StateScheduled
	}
	if meta.FindStatusCondition(s.Resource.Status.Conditions, v1alpha1.Synced) == nil {
		s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, "waiting for target "+s.Target.Name)
	}
	if meta.FindStatusCondition(s.Resource.Status.Conditions, v1alpha1.Ready) == nil {
		s.SetCondition(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, "waiting for target "+s.Target.Name)
	}
	return reconciler.ErrDone
}

// ReportDeletionWait reports the reason why a deletion waits, with one event.
func (s *Scope) ReportDeletionWait(message string) {
	if s.SkipStatus { // the queue of the other target reports it
		return
	}
	was := meta.FindStatusCondition(s.Before.Status.Conditions, v1alpha1.Synced)
	if was == nil || was.Message != message {
		s.Events = append(s.Events, events.Event{Warning: true, Reason: v1alpha1.EventWaiting, Note: message})
	}
	s.Resource.Status.State = v1alpha1.StateDeleting
	s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonWithdrawing, message)
}

// WaitForKind ends the reconcile of an object whose kind the target does not have, until
// the target gets a definition of the kind.
func (s *Scope) WaitForKind(missing error) error {
	gvk := s.Desired.GroupVersionKind()
	s.Connection.WaitForKind(gvk, client.ObjectKeyFromObject(s.Resource), missing)
	s.SetFailed(v1alpha1.ReasonUnknownKind, plan.UnknownKindMessage(s.Target.Name, gvk)+"; it is sent when the target has a definition of the kind")
	return reconciler.ErrDone
}

// WaitForResource ends the reconcile until another resource changed. If that resource
// failed, this one has failed as well.
func (s *Scope) WaitForResource(first *v1alpha1.KubernetesApplicationResource, problem string) error {
	message := fmt.Sprintf("%s; it waits for resource %s of the same application", problem, first.Name)
	if first.Status.State == v1alpha1.StateFailed {
		s.SetFailed(v1alpha1.ReasonApplying, message+", which failed")
	} else {
		s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, message)
		s.Resource.Status.State = v1alpha1.StateScheduled
	}
	s.SetCondition(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, message)
	return reconciler.ErrDone
}

// WrittenByPredecessor tells whether the object on the target was applied for another
// resource of the same name, which existed before a restore. A resource that a user
// wrote owns the object of its predecessor. An object without marks was released.
func (s *Scope) WrittenByPredecessor() bool {
	if !s.State.Owned() || metav1.GetControllerOf(s.Resource) == nil && !policies.LostNativeObject(s.Resource) {
		return false
	}
	writer := s.Observed.GetAnnotations()[v1alpha1.ResourceUIDAnnotation]
	return writer != "" && writer != string(s.Resource.UID)
}

// KeepForSuccessor reports an object that remains as it is. missing names the owner that
// may be restored.
func (s *Scope) KeepForSuccessor(missing string) {
	s.SkipStatus = true
	s.Events = append(s.Events, events.Event{Warning: true, Reason: v1alpha1.EventReleased, Note: fmt.Sprintf(
		"%s remains on target %s: this resource was restored without its owner, %s; if the owner is not restored, delete the object on the target",
		policies.RemoteObjectName(s.Resource), s.Target.Name, missing)})
}
