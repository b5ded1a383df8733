package propagation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
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
func (c *applier) readDriftPolicy(ctx context.Context, s *scope.Scope) error {
	namespace := plan.MetadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.hub.Get(ctx, client.ObjectKey{Name: s.Resource.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading namespace %s: %w", s.Resource.Namespace, err)
	}
	policy, malformed := policies.DriftPolicyOf(s.Resource, namespace)
	if s.DriftPolicy = policy; len(malformed) == 0 {
		return nil
	}
	if s.State.Owned() {
		if err := c.observer.mirrorStatus(ctx, s); err != nil {
			return err
		}
	}
	s.SetFailed(v1alpha1.ReasonInvalidTemplate, fmt.Sprintf("namespace %s: %s", s.Resource.Namespace, malformed.ToAggregate()))
	return reconciler.ErrDone
}

// detectDrift returns the fields that others changed, if the desired object is
// unchanged since the last apply. It computes the drift once for each change.
func (c *applier) detectDrift(ctx context.Context, s *scope.Scope) ([]v1alpha1.Drift, error) {
	state := plan.ObservedDigest(s.Observed, plan.DifferingPaths(s.Desired.Object, s.Observed.Object))
	last := c.memory.Writes.GetOn(s.Target, s.Resource.UID)
	if state == last.AcceptedDigest {
		return nil, nil
	}
	found := last.Drift.Drifts
	if last.Drift.ObservedDigest != state {
		var err error
		if found, err = c.computeDrift(ctx, s); err != nil {
			return nil, err
		}
		c.memory.Writes.Update(s.Resource.UID, func(w *memory.LastWrite) {
			if w.Target != s.Target.Name {
				*w = memory.LastWrite{StatusVersion: w.StatusVersion, StatusAt: w.StatusAt, Failed: w.Failed, Target: s.Target.Name}
			}
			w.Drift = memory.DriftResult{ObservedDigest: state, Drifts: found}
		})
	}
	out := slices.Clone(found)
	now := metav1.Now().Rfc3339Copy()
	for i := range out {
		out[i].FirstSeenTime = plan.FirstSeen(s.Resource.Status.Drift, out[i].Path, now)
	}
	return out, nil
}

// computeDrift applies the object as a dry run. The fields that this would change have
// drifted. Fields that the target itself changes in an apply have not, and neither have
// fields that are left to an autoscaler.
func (c *applier) computeDrift(ctx context.Context, s *scope.Scope) ([]v1alpha1.Drift, error) {
	live, err := s.GetLive(ctx)
	if err != nil {
		return nil, err
	}
	if live.GetResourceVersion() != s.Observed.GetResourceVersion() {
		return nil, reconciler.RequeueAfter(reconciler.CacheLag) // the cache does not have the change yet
	}
	with := plan.ApplyOptions{Force: policies.HasForceAnnotation(s.Resource)}
	result, err := s.RequestApply(ctx, with, client.DryRunAll)
	var owners []plan.FieldOwner
	if fields := plan.ConflictingFields(err); len(fields) > 0 {
		owners = plan.FieldOwnersOf(live, fields)
		with, _ = plan.ResolveConflicts(owners)
		result, err = s.RequestApply(ctx, with, client.DryRunAll)
	}
	switch {
	case apierrors.IsConflict(err):
		return nil, reconciler.RequeueAfter(reconciler.CacheLag) // another writer replaced the object after it was read
	case clusters.IsUnreachable(err):
		return nil, s.ProbeIfUnreachable(err)
	case err != nil: // the refusal of the dry run would not show more
		result = s.Desired
	}
	if now, err := s.GetLive(ctx); err != nil {
		return nil, err
	} else if now.GetResourceVersion() != live.GetResourceVersion() {
		return nil, reconciler.RequeueAfter(reconciler.CacheLag) // the write of a controller on the target would look like drift
	}
	return plan.DriftsOf(plan.Differences(plan.AppliedFields(result), plan.AppliedFields(live)), owners, policies.IsSecret(s.Desired)), nil
}

// reportDeletedOnTarget reports that the object was deleted on the target.
func (c *applier) reportDeletedOnTarget(s *scope.Scope) error {
	message := fmt.Sprintf("%s %s was deleted on target %s, and is not created again, because the drift policy is Report", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name)
	s.SetFailed(v1alpha1.ReasonDeletedOnTarget, fmt.Sprintf("%s; to create it again, change the object on the hub, or set %s to %s", message, v1alpha1.DriftAnnotation, v1alpha1.DriftCorrect))
	s.SetCondition(v1alpha1.Drifted, metav1.ConditionTrue, v1alpha1.ReasonDeletedOnTarget, message)
	s.Resource.Status.Drift = []v1alpha1.Drift{{Path: ".", FirstSeenTime: plan.FirstSeen(s.Before.Status.Drift, ".", metav1.Now().Rfc3339Copy())}}
	s.ClearRemoteStatus()
	return reconciler.RequeueAfter(c.options.Resync)
}
