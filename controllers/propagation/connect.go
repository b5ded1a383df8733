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
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/policies"
)

// connector has the steps that connect to the target and read the object there.
type connector struct {
	*base
	cache cache.Cache
}

// connect finds the connection to the target, and the target's cache of the object's
// kind.
func (c *connector) connect(ctx context.Context, s *scope.Scope) error {
	connection, err := c.clusters.Get(s.Target)
	var problem *clusters.Problem
	switch {
	case errors.Is(err, clusters.ErrUnknown):
		return c.reportUnknownTarget(ctx, s)
	case errors.As(err, &problem):
		s.SetCondition(v1alpha1.TargetReachable, metav1.ConditionFalse, problem.Reason, fmt.Sprintf("target %s %s", s.Target.Name, problem.Message))
		return s.WaitForTarget()
	case err != nil:
		return err
	}
	state := connection.State()
	if state.Reachable != metav1.ConditionUnknown { // an unknown state does not replace a known one
		meta.SetStatusCondition(&s.Resource.Status.Conditions, state.Condition(s.Target.Name, s.Resource.Generation))
	}
	if !state.IsReachable() {
		return s.WaitForTarget()
	}
	if f := connection.Fence(); f != nil && f.State == fence.Pending {
		return s.WaitForTarget()
	}
	s.Connection = connection
	return c.findReader(ctx, s)
}

// findReader finds the target's cache of the object's kind.
func (c *connector) findReader(ctx context.Context, s *scope.Scope) error {
	reader, synced, err := c.informer(s)
	switch {
	case meta.IsNoMatchError(err) && s.IsRemoval():
		c.recordKindGone(s)
		return nil
	case meta.IsNoMatchError(err):
		if wait := c.waitForDefinition(ctx, s); wait != nil {
			return wait
		}
		return s.WaitForKind(err)
	case clusters.IsUnreachable(err):
		return s.ProbeIfUnreachable(err)
	case apierrors.IsForbidden(err):
		return s.ReportRefusal(err)
	case err != nil:
		return err
	case !synced:
		return s.WaitForTarget()
	}
	s.Reader = reader
	return nil
}

// informer returns the target's cache of the object's kind. If the target lacks the
// kind, the next request is sent only when the target may have it. An object that is to
// be deleted or released may exist although the target dropped its version: then
// another served version is used.
func (c *connector) informer(s *scope.Scope) (clusters.Reader, bool, error) {
	gvk := s.Desired.GroupVersionKind()
	if !s.IsRemoval() {
		if err := s.Connection.MissingKind(gvk); err != nil {
			return nil, false, err
		}
		return s.Connection.Informer(gvk)
	}
	if !s.Connection.IsVersionDropped(gvk) {
		if reader, synced, err := s.Connection.Informer(gvk); !meta.IsNoMatchError(err) {
			return reader, synced, err
		}
	}
	served, err := s.Connection.Served(gvk)
	if err != nil {
		return nil, false, err
	}
	s.Desired.SetGroupVersionKind(served)
	return s.Connection.Informer(served)
}

// recordKindGone records that the object was deleted with its kind, and reports it on
// the resource and on the native object.
func (c *connector) recordKindGone(s *scope.Scope) {
	s.KindGone = true
	gone := events.Event{Warning: true, Reason: v1alpha1.EventKindGone, Note: fmt.Sprintf(
		"target %s no longer serves kind %s of group %s in any version; %s was deleted with its kind",
		s.Target.Name, s.Desired.GetKind(), s.Desired.GroupVersionKind().Group, policies.RemoteObjectName(s.Resource))}
	s.Events = append(s.Events, gone)
	if s.Resource.DeletionTimestamp == nil && events.Regarding(s.Resource) != client.Object(s.Resource) {
		events.Emit(c.recorder, s.Resource, "Propagate", gone)
	}
}

// reportUnknownTarget reports that a target is not published. A published target may be
// unknown because this process has not connected to it yet.
func (c *connector) reportUnknownTarget(ctx context.Context, s *scope.Scope) error {
	err := c.hub.Get(ctx, s.Target, &v1alpha1.KubernetesTarget{})
	switch {
	case apierrors.IsNotFound(err):
		s.SetCondition(v1alpha1.TargetReachable, metav1.ConditionFalse, v1alpha1.ReasonTargetMissing,
			fmt.Sprintf("target %s is not published: there is no such KubernetesTarget", s.Target.Name))
	case err != nil:
		return fmt.Errorf("reading target %s: %w", s.Target.Name, err)
	}
	return s.WaitForTarget()
}

// readObject reads the object on the target. The cache holds only objects with the
// label of this hub, and may be behind, so an object that is not in the cache is read
// from the target, unless the resource is new.
func (c *connector) readObject(ctx context.Context, s *scope.Scope) error {
	if s.KindGone {
		s.State = plan.Absent
		return nil
	}
	observed := &unstructured.Unstructured{}
	observed.SetGroupVersionKind(s.Desired.GroupVersionKind())
	key := client.ObjectKeyFromObject(s.Desired)
	if key.Namespace == "" {
		if namespaced, err := s.Connection.Client().IsObjectNamespaced(observed); err != nil {
			return s.ProbeIfUnreachable(fmt.Errorf("looking up %s: %w", s.Desired.GetKind(), err))
		} else if namespaced {
			key.Namespace = metav1.NamespaceDefault
			s.Desired.SetNamespace(key.Namespace)
		}
	}
	err := s.Reader.Get(ctx, key, observed)
	if apierrors.IsNotFound(err) && !c.isNew(s) {
		err = s.CallTarget(ctx, func(ctx context.Context) error { return s.Connection.Client().Get(ctx, key, observed) })
	}
	if s.IsRemoval() {
		if wait := s.RetryOtherVersion(err, observed); wait != nil {
			return wait
		}
	}
	switch {
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		return s.ReportRefusal(err)
	case err != nil:
		return s.ProbeIfUnreachable(fmt.Errorf("reading %s on target %s: %w", s.Desired.GetKind(), s.Target.Name, err))
	default:
		s.Observed = observed
	}
	kinds.Retain(s.Desired, s.Observed)
	s.State = plan.StateOf(s.Desired, s.Observed, s.Resource, c.options.HubID)
	return nil
}

// isNew tells whether the object of a resource is to be created without a read, because
// the object was not applied yet. If the target has an object of that name, the apply
// fails with a conflict, and the next reconcile reads the object. An object with copies is
// always read: the copies are sent first, and not for an object of another owner.
func (c *connector) isNew(s *scope.Scope) bool {
	if s.IsRemoval() || s.Content != nil || s.HasCopies() {
		return false
	}
	last := c.memory.Writes.Get(s.Resource.UID)
	state, _ := plan.Expected(s.Desired, s.Resource, s.Target.Name)
	return state == plan.Absent && last.Target == "" && !last.Exists
}
