package propagation

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/fence"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// connector has the steps that connect to the target and read the object there.
type connector struct {
	*base
	cache cache.Cache
}

// connect finds the connection to the target, and the target's cache of the object's
// kind.
func (c *connector) connect(ctx context.Context, s *scope) error {
	connection, err := c.clusters.Get(s.target)
	var problem *clusters.Problem
	switch {
	case errors.Is(err, clusters.ErrUnknown):
		return c.reportUnknownTarget(ctx, s)
	case errors.As(err, &problem):
		s.setCondition(v1alpha1.TargetReachable, metav1.ConditionFalse, problem.Reason, fmt.Sprintf("target %s %s", s.target.Name, problem.Message))
		return s.waitForTarget()
	case err != nil:
		return err
	}
	state := connection.State()
	if state.Reachable != metav1.ConditionUnknown { // an unknown state does not replace a known one
		meta.SetStatusCondition(&s.resource.Status.Conditions, state.Condition(s.target.Name, s.resource.Generation))
	}
	if !state.IsReachable() {
		return s.waitForTarget()
	}
	if f := connection.Fence(); f != nil && f.State == fence.Pending {
		return s.waitForTarget()
	}
	s.connection = connection
	return c.findReader(ctx, s)
}

// findReader finds the target's cache of the object's kind.
func (c *connector) findReader(ctx context.Context, s *scope) error {
	reader, synced, err := c.informer(s)
	switch {
	case meta.IsNoMatchError(err) && s.isRemoval():
		c.recordKindGone(s)
		return nil
	case meta.IsNoMatchError(err):
		if wait := c.waitForDefinition(ctx, s); wait != nil {
			return wait
		}
		return s.waitForKind(err)
	case clusters.IsUnreachable(err):
		return s.probeIfUnreachable(err)
	case apierrors.IsForbidden(err):
		return s.reportRefusal(err)
	case err != nil:
		return err
	case !synced:
		return s.waitForTarget()
	}
	s.reader = reader
	return nil
}

// informer returns the target's cache of the object's kind. If the target lacks the
// kind, the next request is sent only when the target may have it. An object that is to
// be deleted or released may exist although the target dropped its version: then
// another served version is used.
func (c *connector) informer(s *scope) (clusters.Reader, bool, error) {
	gvk := s.desired.GroupVersionKind()
	if !s.isRemoval() {
		if err := s.connection.MissingKind(gvk); err != nil {
			return nil, false, err
		}
		return s.connection.Informer(gvk)
	}
	if !s.connection.IsVersionDropped(gvk) {
		if reader, synced, err := s.connection.Informer(gvk); !meta.IsNoMatchError(err) {
			return reader, synced, err
		}
	}
	served, err := s.connection.Served(gvk)
	if err != nil {
		return nil, false, err
	}
	s.desired.SetGroupVersionKind(served)
	return s.connection.Informer(served)
}

// recordKindGone records that the object was deleted with its kind, and reports it on
// the resource and on the native object.
func (c *connector) recordKindGone(s *scope) {
	s.kindGone = true
	gone := events.Event{Warning: true, Reason: v1alpha1.EventKindGone, Note: fmt.Sprintf(
		"target %s no longer serves kind %s of group %s in any version; %s was deleted with its kind",
		s.target.Name, s.desired.GetKind(), s.desired.GroupVersionKind().Group, policies.RemoteObjectName(s.resource))}
	s.events = append(s.events, gone)
	if s.resource.DeletionTimestamp == nil && events.Regarding(s.resource) != client.Object(s.resource) {
		events.Emit(c.recorder, s.resource, "Propagate", gone)
	}
}

// reportUnknownTarget reports that a target is not published. A published target may be
// unknown because this process has not connected to it yet.
func (c *connector) reportUnknownTarget(ctx context.Context, s *scope) error {
	err := c.hub.Get(ctx, s.target, &v1alpha1.KubernetesTarget{})
	switch {
	case apierrors.IsNotFound(err):
		s.setCondition(v1alpha1.TargetReachable, metav1.ConditionFalse, v1alpha1.ReasonTargetMissing,
			fmt.Sprintf("target %s is not published: there is no such KubernetesTarget", s.target.Name))
	case err != nil:
		return fmt.Errorf("reading target %s: %w", s.target.Name, err)
	}
	return s.waitForTarget()
}

// waitForTarget ends the reconcile. The next event of the target enqueues each resource
// on it. The last observed status remains.
func (s *scope) waitForTarget() error {
	if s.resource.DeletionTimestamp != nil {
		s.waitForTargetToDelete()
		return reconciler.ErrDone
	}
	if s.resource.Status.State == "" {
		s.resource.Status.State = v1alpha1.StateScheduled
	}
	if meta.FindStatusCondition(s.resource.Status.Conditions, v1alpha1.Synced) == nil {
		s.setCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, "waiting for target "+s.target.Name)
	}
	if meta.FindStatusCondition(s.resource.Status.Conditions, v1alpha1.Ready) == nil {
		s.setCondition(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, "waiting for target "+s.target.Name)
	}
	return reconciler.ErrDone
}

// readObject reads the object on the target. The cache holds only objects with the
// label of this hub, and may be behind, so an object that is not in the cache is read
// from the target, unless the resource is new.
func (c *connector) readObject(ctx context.Context, s *scope) error {
	if s.kindGone {
		s.state = plan.Absent
		return nil
	}
	observed := &unstructured.Unstructured{}
	observed.SetGroupVersionKind(s.desired.GroupVersionKind())
	key := client.ObjectKeyFromObject(s.desired)
	if key.Namespace == "" {
		if namespaced, err := s.connection.Client().IsObjectNamespaced(observed); err != nil {
			return s.probeIfUnreachable(fmt.Errorf("looking up %s: %w", s.desired.GetKind(), err))
		} else if namespaced {
			key.Namespace = metav1.NamespaceDefault
			s.desired.SetNamespace(key.Namespace)
		}
	}
	err := s.reader.Get(ctx, key, observed)
	if apierrors.IsNotFound(err) && !c.isNew(s) {
		err = s.callTarget(ctx, func(ctx context.Context) error { return s.connection.Client().Get(ctx, key, observed) })
	}
	if s.isRemoval() {
		if wait := s.retryOtherVersion(err, observed); wait != nil {
			return wait
		}
	}
	switch {
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		return s.reportRefusal(err)
	case err != nil:
		return s.probeIfUnreachable(fmt.Errorf("reading %s on target %s: %w", s.desired.GetKind(), s.target.Name, err))
	default:
		s.observed = observed
	}
	kinds.Retain(s.desired, s.observed)
	s.state = plan.StateOf(s.desired, s.observed, s.resource, c.options.HubID)
	return nil
}

// isNew tells whether the object of a resource is to be created without a read, because
// the object was not applied yet. If the target has an object of that name, the apply
// fails with a conflict, and the next reconcile reads the object. An object with copies is
// always read: the copies are sent first, and not for an object of another owner.
func (c *connector) isNew(s *scope) bool {
	if s.isRemoval() || s.content != nil || len(s.dependencies) > 0 {
		return false
	}
	last := c.memory.Writes.Get(s.resource.UID)
	state, _ := plan.Expected(s.desired, s.resource, s.target.Name)
	return state == plan.Absent && last.Target == "" && !last.Exists
}
