package propagation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/portico-io/portico/controllers/propagation/memory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/plan"
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
func (c *applier) apply(ctx context.Context, s *scope) error {
	if err := c.ensureFinalizer(ctx, s); err != nil {
		return err
	}
	before := s.observed
	var drift []v1alpha1.Drift
	var err error
	switch s.state {
	case plan.NativeObject, plan.Foreign:
		return c.reportNotOwned(s)
	case plan.Adoptable:
		err = c.send(ctx, s, reasonAdopted)
	case plan.Drifted:
		drift, err = c.applyDrifted(ctx, s)
	case plan.Absent:
		if s.deletedOnTarget() {
			return c.reportDeletedOnTarget(s)
		}
		err = c.send(ctx, s, reasonCreated)
	}
	if err != nil {
		return err
	}
	s.recordAdoption(before, c.options.HubID)
	s.setCondition(v1alpha1.Synced, metav1.ConditionTrue, v1alpha1.ReasonApplied,
		fmt.Sprintf("%s %s is applied on target %s", s.desired.GetKind(), s.desired.GetName(), s.target.Name)+c.yieldedNote(s))
	s.resource.Status.State = v1alpha1.StateSubmitted
	s.reportDrift(drift)
	return nil
}

// applyDrifted applies an object that differs from the desired one, or returns the drift
// that the drift policy does not correct.
func (c *applier) applyDrifted(ctx context.Context, s *scope) ([]v1alpha1.Drift, error) {
	last := c.memory.Writes.GetOn(s.target, s.resource.UID)
	if last.Digest == plan.DigestOf(s.desired) && memory.IsOlder(s.observed.GetResourceVersion(), last.ResourceVersion) {
		return nil, reconciler.ErrDone // the cache does not have our last apply yet
	}
	if plan.DigestOf(s.observed) != plan.DigestOf(s.desired) {
		return nil, c.applyUnlessInConflict(ctx, s, last, nil)
	}
	if s.driftPolicy == v1alpha1.DriftReport {
		return c.detectDrift(ctx, s)
	}
	paths := plan.DifferingPaths(s.desired.Object, s.observed.Object)
	if plan.ObservedDigest(s.observed, paths) == last.AcceptedDigest {
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
func (c *applier) applyUnlessInConflict(ctx context.Context, s *scope, last memory.LastWrite, changed []string) error {
	sinceCheck := time.Since(last.ConflictCheckedAt)
	if last.ConflictDigest != "" && last.ConflictDigest == conflictDigest(s) && sinceCheck < pollInterval && !policies.HasForceAnnotation(s.resource) {
		if err := c.observer.mirrorStatus(ctx, s); err != nil {
			return err
		}
		return reconciler.RequeueAfter(pollInterval - sinceCheck)
	}
	reason := reasonChanged
	if len(changed) > 0 {
		reason = reasonReverted
	}
	version := s.observed.GetResourceVersion()
	if err := c.send(ctx, s, reason); err != nil {
		return err
	}
	// Some paths also differ after the apply: values that the target writes in another
	// form, such as 0.5 for 500m, and fields that are left to others. They were not
	// reverted.
	still := plan.DifferingPaths(s.desired.Object, s.observed.Object)
	reverted := slices.DeleteFunc(changed, func(path string) bool { return slices.Contains(still, path) })
	if len(reverted) > 0 && s.observed.GetResourceVersion() != version {
		c.memory.Writes.Update(s.resource.UID, func(w *memory.LastWrite) { w.RecordRevert(time.Now()) })
		c.observer.metrics.Reverted.WithLabelValues(s.target.Namespace, s.target.Name).Inc()
		s.events = append(s.events, events.Event{Reason: v1alpha1.EventDriftReverted,
			Note: fmt.Sprintf("reverted on target %s: %s", s.target.Name, strings.Join(reverted, ", "))})
	}
	return nil
}

// reportNotOwned reports an object that the resource neither owns nor adopts.
func (c *applier) reportNotOwned(s *scope) error {
	s.setFailed(v1alpha1.ReasonOwnershipConflict, plan.NotOwnedMessage(s.target.Name, s.desired, s.observed, s.state, s.resource, c.options.HubID))
	s.recordOwnershipLost()
	s.clearRemoteStatus()
	return reconciler.RequeueAfter(pollInterval)
}

// send applies the object, and creates its namespace if necessary. The managers of the
// fields are read only after a conflict, because caches do not hold them.
func (c *applier) send(ctx context.Context, s *scope, reason string) error {
	with := plan.ApplyOptions{Force: policies.HasForceAnnotation(s.resource)}
	var changed []string
	if s.observed != nil {
		changed = plan.DifferingPaths(s.desired.Object, s.observed.Object)
	}
	result, err := s.requestApply(ctx, with)
	if plan.IsNamespaceMissing(err) {
		if wait := c.connector.waitForNamespace(ctx, s); wait != nil {
			return wait
		}
		if err = s.createNamespace(ctx); err == nil {
			result, err = s.requestApply(ctx, with)
		}
	}
	if fields := plan.ConflictingFields(err); len(fields) > 0 && s.state != plan.Absent {
		live, failed := s.getLive(ctx)
		if failed != nil {
			return failed
		}
		var conflicts []plan.FieldOwner
		if with, conflicts = plan.ResolveConflicts(plan.FieldOwnersOf(live, fields)); len(conflicts) > 0 {
			return c.reportFieldConflict(ctx, s, conflicts)
		}
		with = with.ForReplicas(s.desired)
		result, err = s.requestApply(ctx, with)
	}
	if plan.IsUnexpected(err) {
		c.memory.Writes.Update(s.resource.UID, func(w *memory.LastWrite) { w.Exists = true })
		return reconciler.RequeueAfter(cacheLag)
	}
	if err != nil {
		return s.reportRefusal(err)
	}
	s.logWrite(ctx, "Applied object to target", result, "reason", reason, "changed", changed[:min(len(changed), maxLoggedPaths)])
	c.memory.Writes.Update(s.resource.UID, func(w *memory.LastWrite) {
		w.Target = s.target.Name
		w.Digest = plan.DigestOf(s.desired)
		w.ResourceVersion = result.GetResourceVersion()
		w.AcceptedDigest = plan.ObservedDigest(result, plan.DifferingPaths(s.desired.Object, result.Object))
		w.YieldedNote = plan.YieldedNote(with.Yielded)
		w.ConflictDigest = ""
	})
	s.observed = result
	return nil
}

// maxLoggedPaths bounds the paths in one line of the log.
const maxLoggedPaths = 20

// reportFieldConflict reports the managers of fields in conflict. The resource is
// reconciled again when the object changes, and at intervals, because a manager may give
// up a field without a change of the object.
func (c *applier) reportFieldConflict(ctx context.Context, s *scope, conflicts []plan.FieldOwner) error {
	if s.state == plan.Adoptable {
		s.clearRemoteStatus()
	} else if err := c.observer.mirrorStatus(ctx, s); err != nil {
		return err
	}
	s.setFailed(v1alpha1.ReasonFieldConflict, plan.FieldConflictMessage(s.target.Name, s.desired, conflicts))
	c.memory.Writes.Update(s.resource.UID, func(w *memory.LastWrite) {
		w.Target = s.target.Name
		w.ConflictDigest, w.ConflictCheckedAt = conflictDigest(s), time.Now()
	})
	return reconciler.RequeueAfter(pollInterval)
}

// conflictDigest identifies the desired and the observed object of a conflict.
func conflictDigest(s *scope) string {
	return plan.ObservedDigest(s.observed, []string{plan.DigestOf(s.desired)})
}

// yieldedNote returns the end of the message about an applied object: the fields that
// are left to others.
func (c *applier) yieldedNote(s *scope) string {
	if s.state != plan.Drifted {
		return ""
	}
	return c.memory.Writes.GetOn(s.target, s.resource.UID).YieldedNote
}

// recordAdoption records that the resource owns the object, and reports an adoption.
func (s *scope) recordAdoption(before *unstructured.Unstructured, hubID string) {
	s.resource.Status.RemoteUID = s.observed.GetUID()
	switch {
	case s.state == plan.Adoptable:
		s.events = append(s.events, events.Event{Reason: v1alpha1.EventAdopted, Note: fmt.Sprintf(
			"%s %s existed on target %s, belonged to %s, and was adopted", s.desired.GetKind(), s.desired.GetName(), s.target.Name, plan.OwnerName(before, hubID))})
	case s.state == plan.Drifted && plan.MadeByPredecessor(before):
		s.events = append(s.events, events.Event{Reason: v1alpha1.EventAdopted, Note: fmt.Sprintf(
			"%s %s on target %s was made by Portico's predecessor, and was adopted", s.desired.GetKind(), s.desired.GetName(), s.target.Name)})
	}
}

// recordOwnershipLost records that the resource does not own the object. A resource with
// the adoption policy Force keeps the UID, so that it does not adopt the object again.
func (s *scope) recordOwnershipLost() {
	if policies.AdoptionPolicyOf(s.resource) != v1alpha1.AdoptForce {
		s.resource.Status.RemoteUID = ""
	}
}
