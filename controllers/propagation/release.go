package propagation

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=delete

// releaseObject removes Portico's marks from the object, which remains on the target,
// and removes the finalizer of the resource, or deletes the resource. This is for a
// native object that was deleted with --cascade=orphan, and for the deletion policy
// Orphan.
func (c *remover) releaseObject(ctx context.Context, s *scope.Scope) error {
	if s.Resource.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(s.Resource, v1alpha1.PropagationFinalizer) {
		return reconciler.ErrDone // the object is released, and the resource has finalizers of others
	}
	if policies.LostNativeObject(s.Resource) && s.WrittenByPredecessor() {
		if err := c.leaveShared(ctx, s); err != nil {
			return err
		}
		s.KeepForSuccessor("the object")
	} else if err := c.releaseObjects(ctx, s); err != nil {
		return err
	}
	if s.Resource.Spec.LeavingTargetRef != nil {
		return reconciler.ErrDone // the object on the other target is released, too
	}
	if err := c.writer.RemoveFinalizer(ctx, s.Resource, v1alpha1.PropagationFinalizer); err != nil {
		return err
	}
	s.SkipStatus = true
	if s.Resource.DeletionTimestamp != nil {
		return reconciler.ErrDone
	}
	if err := c.writer.Delete(ctx, s.Resource, "deleting the released"); err != nil {
		return err
	}
	return reconciler.ErrDone
}

// releaseObjects releases the object and its copies.
func (c *remover) releaseObjects(ctx context.Context, s *scope.Scope) error {
	if err := c.orphanShared(ctx, s); err != nil {
		return err
	}
	if s.State.Owned() {
		if err := c.unmarkObject(ctx, s, s.Desired); err != nil {
			return err
		}
		s.Events = append(s.Events, events.Event{Reason: v1alpha1.EventReleased, Note: fmt.Sprintf(
			"%s remains on target %s, without Portico's marks and without an owner", policies.RemoteObjectName(s.Resource), s.Target.Name)})
	}
	return c.copies.forEach(ctx, s, c.unmarkObject)
}
