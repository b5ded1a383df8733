package propagation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
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
func (c *remover) waitForApplication(ctx context.Context, s *scope.Scope) error {
	if s.Resource.DeletionTimestamp != nil || scope.OrphansObject(s.Resource) {
		return nil
	}
	if to := s.Resource.Spec.TargetRef; to != nil && !c.isApplicationReadyOn(s.Resource, to.Name) {
		return reconciler.RequeueAfter(scope.PollInterval) // the object has not been read yet
	}
	// The cache may not have a move back to the old target yet.
	err := c.live.Get(ctx, client.ObjectKeyFromObject(s.Resource), s.Resource)
	if apierrors.IsNotFound(err) {
		return reconciler.ErrDone
	}
	if err != nil {
		return fmt.Errorf("reading resource %s: %w", client.ObjectKeyFromObject(s.Resource), err)
	}
	if !plan.RefersTo(s.Resource.Spec.LeavingTargetRef, s.Target) || s.Resource.Spec.TargetRef == nil {
		return reconciler.ErrDone // the cache does not have the change yet
	}
	target := &v1alpha1.KubernetesTarget{}
	if err := c.hub.Get(ctx, s.Target, target); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading target %s: %w", s.Target, err)
	}
	if target.DeletionTimestamp != nil && policies.HasReleaseAnnotation(target) {
		return reconciler.ErrDone // the object is left behind; the reference to the target is removed in a moment
	}
	to := s.Resource.Spec.TargetRef.Name
	if s.Resource.Status.Target != to || !c.isApplicationReadyOn(s.Resource, to) {
		return reconciler.RequeueAfter(scope.PollInterval)
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
func (c *remover) isSameOnNewTarget(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.State.Owned() || s.Resource.Spec.TargetRef == nil || s.Resource.DeletionTimestamp != nil || scope.OrphansObject(s.Resource) {
		return false, nil
	}
	name := s.Resource.Spec.TargetRef.Name
	connection, err := c.clusters.Get(types.NamespacedName{Namespace: s.Resource.Namespace, Name: name})
	if err != nil || connection.Client() == nil {
		return false, reconciler.RequeueAfter(scope.PollInterval) // the new target became unreachable
	}
	other := &metav1.PartialObjectMetadata{}
	other.SetGroupVersionKind(s.Desired.GroupVersionKind())
	call, cancel := connection.WithTimeout(ctx)
	defer cancel()
	err = connection.Client().Get(call, client.ObjectKeyFromObject(s.Desired), other)
	if meta.IsNoMatchError(err) || clusters.IsVersionNotServed(err) {
		served, missing := connection.Served(s.Desired.GroupVersionKind())
		if meta.IsNoMatchError(missing) {
			return false, nil
		}
		if missing != nil {
			return false, missing
		}
		other.SetGroupVersionKind(served)
		err = connection.Client().Get(call, client.ObjectKeyFromObject(s.Desired), other)
	}
	if client.IgnoreNotFound(err) != nil {
		if clusters.IsUnreachable(err) {
			connection.RequestProbe()
		}
		return false, fmt.Errorf("reading %s on target %s: %w", s.Desired.GetKind(), name, err)
	}
	return err == nil && other.UID == s.Observed.GetUID(), nil
}

// removeFromOldTarget removes the object and its copies from the target that the
// resource leaves, and ends the move.
func (c *remover) removeFromOldTarget(ctx context.Context, s *scope.Scope) error {
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
	before := s.Resource.DeepCopy()
	s.Resource.Spec.LeavingTargetRef = nil
	if s.Resource.DeletionTimestamp != nil && s.Resource.Spec.TargetRef == nil {
		controllerutil.RemoveFinalizer(s.Resource, v1alpha1.PropagationFinalizer)
	}
	wrote, err := c.writer.Patch(ctx, before, s.Resource, "ending the move of")
	if err != nil || !wrote {
		return err
	}
	if s.Resource.Spec.TargetRef != nil && s.Resource.DeletionTimestamp == nil && !scope.OrphansObject(s.Resource) {
		s.Events = append(s.Events, events.Event{Reason: v1alpha1.EventLeft,
			Note: fmt.Sprintf("%s %s left target %s, and runs on target %s", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name, s.Resource.Spec.TargetRef.Name)})
	}
	return nil
}

// removeOldObject deletes the object from the old target, or releases it. It ends the
// reconcile while the object is being deleted.
func (c *remover) removeOldObject(ctx context.Context, s *scope.Scope) error {
	if !s.State.Owned() {
		return nil
	}
	if scope.OrphansObject(s.Resource) {
		return c.unmarkObject(ctx, s, s.Desired)
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
