package propagation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// applier has the steps that apply the object.
type applier struct {
	*base
	connector connector
	observer  observer
	sources   sources
}

// The reasons of an apply in the log.
const (
	reasonCreated  = "the object does not exist"
	reasonAdopted  = "the resource adopts the object"
	reasonChanged  = "the desired object changed"
	reasonReverted = "the object was changed on the target"
)

// apply applies the object, if its state requires it.
func (c *applier) apply(ctx context.Context, s *scope.Scope) error {
	if err := c.ensureFinalizer(ctx, s); err != nil {
		return err
	}
	before := s.Observed
	var drift []v1alpha1.Drift
	var err error
	switch s.State {
	case plan.NativeObject, plan.Foreign:
		return c.reportNotOwned(s)
	case plan.Adoptable:
		err = c.send(ctx, s, reasonAdopted)
	case plan.Drifted:
		drift, err = c.applyDrifted(ctx, s)
	case plan.Absent:
		if s.DeletedOnTarget() {
			return c.reportDeletedOnTarget(s)
		}
		err = c.send(ctx, s, reasonCreated)
	}
	if err != nil {
		return err
	}
	s.RecordAdoption(before, c.options.HubID)
	s.SetCondition(v1alpha1.Synced, metav1.ConditionTrue, v1alpha1.ReasonApplied,
		fmt.Sprintf("%s %s is applied on target %s", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name)+c.yieldedNote(s))
	s.Resource.Status.State = v1alpha1.StateSubmitted
	s.ReportDrift(drift)
	return nil
}

// applyDrifted applies an object that differs from the desired one, or returns the drift
// that the drift policy does not correct.
func (c *applier) applyDrifted(ctx context.Context, s *scope.Scope) ([]v1alpha1.Drift, error) {
	last := c.memory.Writes.GetOn(s.Target, s.Resource.UID)
	if last.Digest == plan.DigestOf(s.Desired) && reconciler.IsOlder(s.Observed.GetResourceVersion(), last.ResourceVersion) {
		return nil, reconciler.ErrDone // the cache does not have our last apply yet
	}
	if plan.DigestOf(s.Observed) != plan.DigestOf(s.Desired) {
		return nil, c.applyUnlessInConflict(ctx, s, last, nil)
	}
	if s.DriftPolicy == v1alpha1.DriftReport {
		return c.detectDrift(ctx, s)
	}
	if last.MayTakeReplicas() {
		return nil, c.applyUnlessInConflict(ctx, s, last, nil)
	}
	paths := plan.DifferingPaths(s.Desired.Object, s.Observed.Object)
	if plan.ObservedDigest(s.Observed, paths) == last.AcceptedDigest {
		return nil, nil
	}
	if backoff := last.RevertBackoff(time.Now()); backoff > 0 {
		return nil, reconciler.RequeueAfter(backoff)
	}
	return nil, c.applyUnlessInConflict(ctx, s, last, paths)
}

// applyUnlessInConflict applies the object, unless the last conflict of fields is
// unchanged and was checked a short time ago. changed are the paths that others
// changed.
func (c *applier) applyUnlessInConflict(ctx context.Context, s *scope.Scope, last memory.LastWrite, changed []string) error {
	sinceCheck := time.Since(last.ConflictCheckedAt)
	if last.ConflictDigest != "" && last.ConflictDigest == conflictDigest(s) && sinceCheck < scope.PollInterval && !policies.HasForceAnnotation(s.Resource) {
		if err := c.observer.mirrorStatus(ctx, s); err != nil {
			return err
		}
		return reconciler.RequeueAfter(scope.PollInterval - sinceCheck)
	}
	reason := reasonChanged
	if len(changed) > 0 {
		reason = reasonReverted
	}
	version := s.Observed.GetResourceVersion()
	if err := c.send(ctx, s, reason); err != nil {
		return err
	}
	// Some paths also differ after the apply: values that the target writes in another
	// form, such as 0.5 for 500m, and fields that are left to others. They were not
	// reverted.
	still := plan.DifferingPaths(s.Desired.Object, s.Observed.Object)
	reverted := slices.DeleteFunc(changed, func(path string) bool { return slices.Contains(still, path) })
	if len(reverted) > 0 && s.Observed.GetResourceVersion() != version {
		c.memory.Writes.Update(s.Resource.UID, func(w *memory.LastWrite) { w.RecordRevert(time.Now()) })
		c.observer.metrics.Reverted.WithLabelValues(s.Target.Namespace, s.Target.Name).Inc()
		s.Events = append(s.Events, events.Event{Reason: v1alpha1.EventDriftReverted,
			Note: fmt.Sprintf("reverted on target %s: %s", s.Target.Name, strings.Join(reverted, ", "))})
	}
	return nil
}

// reportNotOwned reports an object that the resource neither owns nor adopts.
func (c *applier) reportNotOwned(s *scope.Scope) error {
	s.SetFailed(v1alpha1.ReasonOwnershipConflict, plan.NotOwnedMessage(s.Target.Name, s.Desired, s.Observed, s.State, s.Resource, c.options.HubID))
	s.RecordOwnershipLost()
	s.ClearRemoteStatus()
	return reconciler.RequeueAfter(scope.PollInterval)
}

// send applies the object, and creates its namespace if necessary. The managers of the
// fields are read only after a conflict, because caches do not hold them.
func (c *applier) send(ctx context.Context, s *scope.Scope, reason string) error {
	began := time.Now()
	with := plan.ApplyOptions{Force: policies.HasForceAnnotation(s.Resource)}
	var changed []string
	if s.Observed != nil {
		changed = plan.DifferingPaths(s.Desired.Object, s.Observed.Object)
	}
	result, err := s.RequestApply(ctx, with)
	if plan.IsNamespaceMissing(err) {
		if wait := c.connector.waitForNamespace(ctx, s); wait != nil {
			return wait
		}
		if err = s.CreateNamespace(ctx); err == nil {
			result, err = s.RequestApply(ctx, with)
		}
	}
	if fields := plan.ConflictingFields(err); len(fields) > 0 && s.State != plan.Absent {
		var conflicts []plan.FieldOwner
		var failed error
		if with, conflicts, failed = resolveConflicts(ctx, s, fields); failed != nil {
			return failed
		}
		if len(conflicts) > 0 {
			return c.reportFieldConflict(ctx, s, conflicts)
		}
		result, err = s.RequestApply(ctx, with)
	}
	if plan.IsUnexpected(err) {
		c.memory.Writes.Update(s.Resource.UID, func(w *memory.LastWrite) { w.Exists = true })
		return reconciler.RequeueAfter(reconciler.CacheLag)
	}
	if err != nil {
		return s.ReportRefusal(err)
	}
	s.LogWrite(ctx, "Applied object to target", result, "reason", reason, "changed", changed[:min(len(changed), maxLoggedPaths)])
	c.memory.Writes.Update(s.Resource.UID, func(w *memory.LastWrite) {
		w.Target = s.Target.Name
		w.Digest = plan.DigestOf(s.Desired)
		w.ResourceVersion = result.GetResourceVersion()
		w.AcceptedDigest = plan.ObservedDigest(result, plan.DifferingPaths(s.Desired.Object, result.Object))
		w.YieldedNote, w.YieldedAt = plan.YieldedNote(with.Yielded), began
		w.ConflictDigest = ""
	})
	s.Observed = result
	return nil
}

// resolveConflicts decides the conflicts of fields by the state of the target.
func resolveConflicts(ctx context.Context, s *scope.Scope, fields []string) (plan.ApplyOptions, []plan.FieldOwner, error) {
	live, err := s.GetLive(ctx)
	if err != nil {
		return plan.ApplyOptions{}, nil, err
	}
	with, conflicts := plan.ResolveConflicts(plan.FieldOwnersOf(live, fields))
	with = with.ForReplicas(s.Desired)
	if len(conflicts) > 0 || !with.DependsOnAutoscalers() {
		return with, conflicts, nil
	}
	autoscalers, known, err := s.ListAutoscalers(ctx)
	if known {
		with = with.ForAutoscalers(s.Desired, autoscalers)
	}
	return with, nil, err
}

// maxLoggedPaths bounds the paths in one line of the log.
const maxLoggedPaths = 20

// reportFieldConflict reports the managers of fields in conflict. The resource is
// reconciled again when the object changes, and at intervals, because a manager may give
// up a field without a change of the object.
func (c *applier) reportFieldConflict(ctx context.Context, s *scope.Scope, conflicts []plan.FieldOwner) error {
	if s.State == plan.Adoptable {
		s.ClearRemoteStatus()
	} else if err := c.observer.mirrorStatus(ctx, s); err != nil {
		return err
	}
	s.SetFailed(v1alpha1.ReasonFieldConflict, plan.FieldConflictMessage(s.Target.Name, s.Desired, conflicts))
	c.memory.Writes.Update(s.Resource.UID, func(w *memory.LastWrite) {
		w.Target = s.Target.Name
		w.ConflictDigest, w.ConflictCheckedAt = conflictDigest(s), time.Now()
	})
	return reconciler.RequeueAfter(scope.PollInterval)
}

// conflictDigest identifies the desired and the observed object of a conflict.
func conflictDigest(s *scope.Scope) string {
	return plan.ObservedDigest(s.Observed, []string{plan.DigestOf(s.Desired)})
}

// yieldedNote returns the end of the message about an applied object: the fields that
// are left to others.
func (c *applier) yieldedNote(s *scope.Scope) string {
	if s.State != plan.Drifted {
		return ""
	}
	return c.memory.Writes.GetOn(s.Target, s.Resource.UID).YieldedNote
}
