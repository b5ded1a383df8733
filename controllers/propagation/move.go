package propagation

import (
	"context"
	"fmt"

	"github.com/portico-io/portico/controllers/propagation/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// A resource moves in three steps. Each step may be repeated:
//
//  1. The resource gets a new target, and a reference to the old one. The queue of the
//     new target applies the object there. The status is still that of the old target.
//  2. The object is ready on the new target. The status is that of the new target.
//  3. All resources of the application have completed step 2. The queue of the old target
//     deletes the object there.
//
// So a Service remains until its Deployment runs on the new target, and an old target
// that hangs only delays step 3.

// waitForApplication ends a reconcile on the old target while a resource of the
// application is not ready on the new target. A resource that is being deleted, or
// whose object is orphaned, does not wait.
func (c *remover) waitForApplication(ctx context.Context, s *scope) error {
	if s.resource.DeletionTimestamp != nil || orphansObject(s.resource) {
		return nil
	}
	if to := s.resource.Spec.TargetRef; to != nil && !c.isApplicationReadyOn(s.resource, to.Name) {
		return reconciler.RequeueAfter(pollInterval) // the object has not been read yet
	}
	// The cache may not have a move back to the old target yet.
	err := c.live.Get(ctx, client.ObjectKeyFromObject(s.resource), s.resource)
	if apierrors.IsNotFound(err) {
		return reconciler.ErrDone
	}
	if err != nil {
		return fmt.Errorf("reading resource %s: %w", client.ObjectKeyFromObject(s.resource), err)
	}
	if !plan.RefersTo(s.resource.Spec.LeavingTargetRef, s.target) || s.resource.Spec.TargetRef == nil {
		return reconciler.ErrDone // the cache does not have the change yet
	}
	target := &v1alpha1.KubernetesTarget{}
	if err := c.hub.Get(ctx, s.target, target); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading target %s: %w", s.target, err)
	}
	if target.DeletionTimestamp != nil && policies.HasReleaseAnnotation(target) {
		return reconciler.ErrDone // the object is left behind; the reference to the target is removed in a moment
	}
	to := s.resource.Spec.TargetRef.Name
	if s.resource.Status.Target != to || !c.isApplicationReadyOn(s.resource, to) {
		return reconciler.RequeueAfter(pollInterval)
	}
	return nil
}

// isApplicationReadyOn tells whether all resources of an application are ready on a
// target.
func (c *remover) isApplicationReadyOn(resource *v1alpha1.KubernetesApplicationResource, target string) bool {
	name, member := resource.Labels[v1alpha1.ApplicationLabel]
	return !member || c.memory.Progress.AllReadyOn(types.NamespacedName{Namespace: resource.Namespace, Name: name}, target)
}

// isSameOnNewTarget tells whether the new target has the same object, because both
// targets publish the same cluster.
func (c *remover) isSameOnNewTarget(ctx context.Context, s *scope) (bool, error) {
	if !s.state.Owned() || s.resource.Spec.TargetRef == nil || s.resource.DeletionTimestamp != nil || orphansObject(s.resource) {
		return false, nil
	}
	name := s.resource.Spec.TargetRef.Name
	connection, err := c.clusters.Get(types.NamespacedName{Namespace: s.resource.Namespace, Name: name})
	if err != nil || connection.Client() == nil {
		return false, reconciler.RequeueAfter(pollInterval) // the new target became unreachable
	}
	other := &metav1.PartialObjectMetadata{}
	other.SetGroupVersionKind(s.desired.GroupVersionKind())
	call, cancel := connection.WithTimeout(ctx)
	defer cancel()
	err = connection.Client().Get(call, client.ObjectKeyFromObject(s.desired), other)
	if meta.IsNoMatchError(err) || clusters.IsVersionNotServed(err) {
		served, missing := connection.Served(s.desired.GroupVersionKind())
		if meta.IsNoMatchError(missing) {
			return false, nil
		}
		if missing != nil {
			return false, missing
		}
		other.SetGroupVersionKind(served)
		err = connection.Client().Get(call, client.ObjectKeyFromObject(s.desired), other)
	}
	if client.IgnoreNotFound(err) != nil {
		if clusters.IsUnreachable(err) {
			connection.RequestProbe()
		}
		return false, fmt.Errorf("reading %s on target %s: %w", s.desired.GetKind(), name, err)
	}
	return err == nil && other.UID == s.observed.GetUID(), nil
}

// removeFromOldTarget removes the object and its copies from the target that the
// resource leaves, and ends the move.
func (c *remover) removeFromOldTarget(ctx context.Context, s *scope) error {
	same, err := c.isSameOnNewTarget(ctx, s)
	if err != nil {
		return err
	}
	if !same { // the copies of an object that remains are those of the new target
		if err := c.removeOldObject(ctx, s); err != nil {
			return err
		}
		if err := c.cleanUpCopies(ctx, s); err != nil {
			return err
		}
	}
	before := s.resource.DeepCopy()
	s.resource.Spec.LeavingTargetRef = nil
	if s.resource.DeletionTimestamp != nil && s.resource.Spec.TargetRef == nil {
		controllerutil.RemoveFinalizer(s.resource, v1alpha1.PropagationFinalizer)
	}
	wrote, err := c.writer.Patch(ctx, before, s.resource, "ending the move of")
	if err != nil || !wrote {
		return err
	}
	if s.resource.Spec.TargetRef != nil && s.resource.DeletionTimestamp == nil && !orphansObject(s.resource) {
		s.events = append(s.events, events.Event{Reason: v1alpha1.EventLeft,
			Note: fmt.Sprintf("%s %s left target %s, and runs on target %s", s.desired.GetKind(), s.desired.GetName(), s.target.Name, s.resource.Spec.TargetRef.Name)})
	}
	return nil
}

// removeOldObject deletes the object from the old target, or releases it. It ends the
// reconcile while the object is being deleted.
func (c *remover) removeOldObject(ctx context.Context, s *scope) error {
	if !s.state.Owned() {
		return nil
	}
	if orphansObject(s.resource) {
		return c.unmarkObject(ctx, s, s.desired)
	}
	if shared, err := c.leaveToSibling(ctx, s); err != nil || shared {
		return err
	}
	if kept, err := c.keepNamespaceInUse(ctx, s); err != nil || kept {
		return err
	}
	gone, err := c.deleteObject(ctx, s)
	if err == nil && !gone {
		return reconciler.ErrDone
	}
	return err
}
