package propagation

import (
	"context"
	"fmt"
	"slices"

	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/reconciler"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/policies"
)

// With the drift policy Report, a change or deletion by others on the target remains.
// The whole object is applied again when the desired object changes, because an apply
// always sends the whole object.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// readDriftPolicy reads the drift policy of the resource, which validate checked, or of
// its namespace. While the policy of the namespace is invalid, no object is applied: an
// apply might revert a change that should remain.
func (c *applier) readDriftPolicy(ctx context.Context, s *scope) error {
	namespace := plan.MetadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.hub.Get(ctx, client.ObjectKey{Name: s.resource.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading namespace %s: %w", s.resource.Namespace, err)
	}
	policy, malformed := policies.DriftPolicyOf(s.resource, namespace)
	if s.driftPolicy = policy; len(malformed) == 0 {
		return nil
	}
	if s.state.Owned() {
		if err := c.observer.mirrorStatus(ctx, s); err != nil {
			return err
		}
	}
	s.setFailed(v1alpha1.ReasonInvalidTemplate, fmt.Sprintf("namespace %s: %s", s.resource.Namespace, malformed.ToAggregate()))
	return reconciler.ErrDone
}

// detectDrift returns the fields that others changed, if the desired object is
// unchanged since the last apply. It computes the drift once for each change.
func (c *applier) detectDrift(ctx context.Context, s *scope) ([]v1alpha1.Drift, error) {
	state := plan.ObservedDigest(s.observed, plan.DifferingPaths(s.desired.Object, s.observed.Object))
	last := c.memory.Writes.GetOn(s.target, s.resource.UID)
	if state == last.AcceptedDigest {
		return nil, nil
	}
	found := last.Drift.Drifts
	if last.Drift.ObservedDigest != state {
		var err error
		if found, err = c.computeDrift(ctx, s); err != nil {
			return nil, err
		}
		c.memory.Writes.Update(s.resource.UID, func(w *memory.LastWrite) {
			if w.Target != s.target.Name {
				*w = memory.LastWrite{StatusVersion: w.StatusVersion, StatusAt: w.StatusAt, Failed: w.Failed, Target: s.target.Name}
			}
			w.Drift = memory.DriftResult{ObservedDigest: state, Drifts: found}
		})
	}
	out := slices.Clone(found)
	now := metav1.Now().Rfc3339Copy()
	for i := range out {
		out[i].FirstSeenTime = plan.FirstSeen(s.resource.Status.Drift, out[i].Path, now)
	}
	return out, nil
}

// computeDrift applies the object as a dry run. The fields that this would change have
// drifted. Fields that the target itself changes in an apply have not, and neither have
// fields that are left to an autoscaler.
func (c *applier) computeDrift(ctx context.Context, s *scope) ([]v1alpha1.Drift, error) {
	live, err := s.getLive(ctx)
	if err != nil {
		return nil, err
	}
	if live.GetResourceVersion() != s.observed.GetResourceVersion() {
		return nil, reconciler.RequeueAfter(cacheLag) // the cache does not have the change yet
	}
	with := plan.ApplyOptions{Force: policies.HasForceAnnotation(s.resource)}
	result, err := s.requestApply(ctx, with, client.DryRunAll)
	var owners []plan.FieldOwner
	if fields := plan.ConflictingFields(err); len(fields) > 0 {
		owners = plan.FieldOwnersOf(live, fields)
		with, _ = plan.ResolveConflicts(owners)
		result, err = s.requestApply(ctx, with, client.DryRunAll)
	}
	switch {
	case apierrors.IsConflict(err):
		return nil, reconciler.RequeueAfter(cacheLag) // another writer replaced the object after it was read
	case clusters.IsUnreachable(err):
		return nil, s.probeIfUnreachable(err)
	case err != nil: // the refusal of the dry run would not show more
		result = s.desired
	}
	if now, err := s.getLive(ctx); err != nil {
		return nil, err
	} else if now.GetResourceVersion() != live.GetResourceVersion() {
		return nil, reconciler.RequeueAfter(cacheLag) // the write of a controller on the target would look like drift
	}
	return plan.DriftsOf(plan.Differences(plan.AppliedFields(result), plan.AppliedFields(live)), owners, policies.IsSecret(s.desired)), nil
}

// reportDrift reports drift in the status, and new drift in an event.
func (s *scope) reportDrift(now []v1alpha1.Drift) {
	before := s.before.Status.Drift
	object := fmt.Sprintf("%s %s", s.desired.GetKind(), s.desired.GetName())
	switch {
	case s.driftPolicy != v1alpha1.DriftReport:
		s.resource.Status.Drift = nil
		meta.RemoveStatusCondition(&s.resource.Status.Conditions, v1alpha1.Drifted)
	case len(now) == 0:
		s.resource.Status.Drift = nil
		s.setCondition(v1alpha1.Drifted, metav1.ConditionFalse, v1alpha1.ReasonUnchanged, fmt.Sprintf("%s on target %s has the applied fields", object, s.target.Name))
		if len(before) > 0 {
			s.events = append(s.events, events.Event{Reason: v1alpha1.EventDriftEnded,
				Note: fmt.Sprintf("%s on target %s has the applied fields again", object, s.target.Name)})
		}
	default:
		s.resource.Status.Drift = now[:min(len(now), plan.MaxDrifts)]
		s.setCondition(v1alpha1.Drifted, metav1.ConditionTrue, v1alpha1.ReasonChangedOnTarget,
			fmt.Sprintf("%s was changed on target %s, and the change is kept: %s", object, s.target.Name, plan.ListDrifts(now)))
		added := slices.DeleteFunc(slices.Clone(s.resource.Status.Drift), func(d v1alpha1.Drift) bool {
			return slices.ContainsFunc(before, func(b v1alpha1.Drift) bool { return b.Path == d.Path && b.Observed == d.Observed })
		})
		if len(added) > 0 {
			s.events = append(s.events, events.Event{Warning: true, Reason: v1alpha1.EventDriftFound,
				Note: fmt.Sprintf("changed on target %s, and kept: %s", s.target.Name, plan.ListDrifts(added))})
		}
	}
}

// deletedOnTarget tells whether an absent object was deleted on the target, and the
// drift policy is Report. Otherwise the desired object has not been applied yet.
func (s *scope) deletedOnTarget() bool {
	if s.driftPolicy != v1alpha1.DriftReport || s.resource.Status.Target != s.target.Name || s.isMoving() {
		return false
	}
	current := func(kind string) *metav1.Condition {
		condition := meta.FindStatusCondition(s.before.Status.Conditions, kind)
		if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != s.resource.Generation {
			return nil
		}
		return condition
	}
	drifted := current(v1alpha1.Drifted)
	return current(v1alpha1.Synced) != nil || drifted != nil && drifted.Reason == v1alpha1.ReasonDeletedOnTarget
}

// reportDeletedOnTarget reports that the object was deleted on the target.
func (c *applier) reportDeletedOnTarget(s *scope) error {
	message := fmt.Sprintf("%s %s was deleted on target %s, and is not created again, because the drift policy is Report", s.desired.GetKind(), s.desired.GetName(), s.target.Name)
	s.setFailed(v1alpha1.ReasonDeletedOnTarget, fmt.Sprintf("%s; to create it again, change the object on the hub, or set %s to %s", message, v1alpha1.DriftAnnotation, v1alpha1.DriftCorrect))
	s.setCondition(v1alpha1.Drifted, metav1.ConditionTrue, v1alpha1.ReasonDeletedOnTarget, message)
	s.resource.Status.Drift = []v1alpha1.Drift{{Path: ".", FirstSeenTime: plan.FirstSeen(s.before.Status.Drift, ".", metav1.Now().Rfc3339Copy())}}
	s.clearRemoteStatus()
	return reconciler.RequeueAfter(c.options.Resync)
}
