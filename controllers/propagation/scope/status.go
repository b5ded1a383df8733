package scope

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/policies"
)

// ClearObserved removes the copy of the object, if it is not requested any more, or if the
// object does not exist.
func (s *Scope) ClearObserved() {
	lost := s.State == plan.Foreign || s.State == plan.NativeObject || s.State == plan.Absent && s.Observed == nil
	if s.Resource.Spec.Observe == v1alpha1.ObserveFull && (!lost || s.IsMoving()) {
		return
	}
	status := &s.Resource.Status
	status.Observed, status.Ownership = nil, nil
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.Observed)
}

// TruncateStatus bounds the size of the status.
func (s *Scope) TruncateStatus() {
	if !plan.TruncateStatus(&s.Resource.Status) {
		s.SetCondition(v1alpha1.Ready, metav1.ConditionUnknown, v1alpha1.ReasonTooLarge, fmt.Sprintf(
			"the status of the object is larger than the limit of %d KiB; read it on target %s", plan.MaxRemoteStatus>>10, s.Target.Name))
	}
}

// ReportDrift reports drift in the status, and new drift in an event.
func (s *Scope) ReportDrift(now []v1alpha1.Drift) {
	before := s.Before.Status.Drift
	object := fmt.Sprintf("%s %s", s.Desired.GetKind(), s.Desired.GetName())
	switch {
	case s.DriftPolicy != v1alpha1.DriftReport:
		s.Resource.Status.Drift = nil
		meta.RemoveStatusCondition(&s.Resource.Status.Conditions, v1alpha1.Drifted)
	case len(now) == 0:
		s.Resource.Status.Drift = nil
		s.SetCondition(v1alpha1.Drifted, metav1.ConditionFalse, v1alpha1.ReasonUnchanged, fmt.Sprintf("%s on target %s has the applied fields", object, s.Target.Name))
		if len(before) > 0 {
			s.Events = append(s.Events, events.Event{Reason: v1alpha1.EventDriftEnded,
				Note: fmt.Sprintf("%s on target %s has the applied fields again", object, s.Target.Name)})
		}
	default:
		s.Resource.Status.Drift = now[:min(len(now), plan.MaxDrifts)]
		s.SetCondition(v1alpha1.Drifted, metav1.ConditionTrue, v1alpha1.ReasonChangedOnTarget,
			fmt.Sprintf("%s was changed on target %s, and the change is kept: %s", object, s.Target.Name, plan.ListDrifts(now)))
		added := slices.DeleteFunc(slices.Clone(s.Resource.Status.Drift), func(d v1alpha1.Drift) bool {
			return slices.ContainsFunc(before, func(b v1alpha1.Drift) bool { return b.Path == d.Path && b.Observed == d.Observed })
		})
		if len(added) > 0 {
			s.Events = append(s.Events, events.Event{Warning: true, Reason: v1alpha1.EventDriftFound,
				Note: fmt.Sprintf("changed on target %s, and kept: %s", s.Target.Name, plan.ListDrifts(added))})
		}
	}
}

// DeletedOnTarget tells whether an absent object was deleted on the target, and the
// drift policy is Report. Otherwise the desired object has not been applied yet.
func (s *Scope) DeletedOnTarget() bool {
	if s.DriftPolicy != v1alpha1.DriftReport || s.Resource.Status.Target != s.Target.Name || s.IsMoving() {
		return false
	}
	current := func(kind string) *metav1.Condition {
		condition := meta.FindStatusCondition(s.Before.Status.Conditions, kind)
		if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != s.Resource.Generation {
			return nil
		}
		return condition
	}
	drifted := current(v1alpha1.Drifted)
	return current(v1alpha1.Synced) != nil || drifted != nil && drifted.Reason == v1alpha1.ReasonDeletedOnTarget
}

// RecordAdoption records that the resource owns the object, and reports an adoption.
func (s *Scope) RecordAdoption(before *unstructured.Unstructured, hubID string) {
	s.Resource.Status.RemoteUID = s.Observed.GetUID()
	switch {
	case s.State == plan.Adoptable:
		s.Events = append(s.Events, events.Event{Reason: v1alpha1.EventAdopted, Note: fmt.Sprintf(
			"%s %s existed on target %s, belonged to %s, and was adopted", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name, plan.OwnerName(before, hubID))})
	case s.State == plan.Drifted && plan.MadeByPredecessor(before):
		s.Events = append(s.Events, events.Event{Reason: v1alpha1.EventAdopted, Note: fmt.Sprintf(
			"%s %s on target %s was made by Portico's predecessor, and was adopted", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name)})
	}
}

// RecordOwnershipLost records that the resource does not own the object. A resource with
// the adoption policy Force keeps the UID, so that it does not adopt the object again.
func (s *Scope) RecordOwnershipLost() {
	if policies.AdoptionPolicyOf(s.Resource) != v1alpha1.AdoptForce {
		s.Resource.Status.RemoteUID = ""
	}
}
