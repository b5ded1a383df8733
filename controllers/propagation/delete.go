package propagation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// remover has the steps that delete the object from a target, or release it.
type remover struct {
	*base
	cache     cache.Cache
	connector connector
	copies    copies
}

// withdrawObject deletes the object from the target, and removes the finalizer of the
// resource once the object is gone.
func (c *remover) withdrawObject(ctx context.Context, s *scope.Scope) error {
	if !controllerutil.ContainsFinalizer(s.Resource, v1alpha1.PropagationFinalizer) {
		return reconciler.ErrDone
	}
	if !s.State.Owned() {
		return c.finishDeletion(ctx, s)
	}
	s.Resource.Status.State = v1alpha1.StateDeleting
	if _, errs := policies.DeletionPolicyOf(s.Resource); len(errs) > 0 { // admission was unavailable
		s.ReportDeletionWait(fmt.Sprintf("%s %s is not deleted on target %s until this is corrected: %s", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name, errs.ToAggregate()))
		return reconciler.ErrDone
	}
	if left, err := c.leaveToSuccessor(ctx, s); err != nil {
		return err
	} else if left {
		return reconciler.ErrDone
	}
	if shared, err := c.leaveToSibling(ctx, s); err != nil {
		return err
	} else if shared {
		return c.finishDeletion(ctx, s)
	}
	if kept, err := c.keepNamespaceInUse(ctx, s); err != nil {
		return err
	} else if kept {
		return c.finishDeletion(ctx, s)
	}
	s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonWithdrawing,
		fmt.Sprintf("%s %s is being deleted on target %s", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name))
	if finalizers := foreignFinalizers(s.Observed); finalizers != "" && s.Observed.GetDeletionTimestamp() != nil {
		s.ReportDeletionWait(fmt.Sprintf("%s %s is being deleted on target %s, and is kept there by finalizers: %s", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name, finalizers))
	}
	gone, err := c.deleteObject(ctx, s)
	if err != nil {
		return err
	}
	if gone {
		return c.finishDeletion(ctx, s)
	}
	return reconciler.ErrDone
}

// foreignFinalizers lists the finalizers that others set on an object.
func foreignFinalizers(object *unstructured.Unstructured) string {
	return strings.Join(slices.DeleteFunc(object.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	}), ", ")
}

// deleteObject deletes the object from the target. It tells whether the object was
// deleted or replaced before.
func (c *remover) deleteObject(ctx context.Context, s *scope.Scope) (gone bool, err error) {
	if s.Observed.GetDeletionTimestamp() != nil {
		return false, nil // the watch reports the end of the deletion
	}
	policy, err := c.propagationPolicy(ctx, s.Resource)
	if err != nil {
		return false, err
	}
	err = s.DeleteOnTarget(ctx, s.Observed, "the resource is being deleted, or moves", client.PropagationPolicy(policy))
	if wait := s.RetryOtherVersion(err, s.Observed); wait != nil {
		return false, wait
	}
	if err != nil && !isGone(err) {
		return false, s.ProbeIfUnreachable(fmt.Errorf("deleting %s on target %s: %w", s.Desired.GetKind(), s.Target.Name, err))
	}
	return err != nil, nil
}

// isGone tells whether a deletion failed because the object was deleted before, or
// replaced by another object of its name.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// propagationPolicy returns the policy with which the native object is being deleted. In
// the foreground the object on the target remains until its dependents are gone, too.
func (c *remover) propagationPolicy(ctx context.Context, resource *v1alpha1.KubernetesApplicationResource) (metav1.DeletionPropagation, error) {
	if slices.Contains(resource.Finalizers, metav1.FinalizerDeleteDependents) {
		return metav1.DeletePropagationForeground, nil
	}
	controller := metav1.GetControllerOf(resource)
	if controller == nil {
		return metav1.DeletePropagationBackground, nil
	}
	gvk := schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind)
	if _, isNative := kinds.For(gvk); !isNative {
		return metav1.DeletePropagationBackground, nil // an owner of a kind that Portico does not read
	}
	native := &metav1.PartialObjectMetadata{}
	native.SetGroupVersionKind(gvk)
	// The cache of the owners may be behind the one of the resources.
	err := c.live.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: controller.Name}, native)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the owner of resource %s: %w", client.ObjectKeyFromObject(resource), err)
	}
	if err == nil && native.GetUID() == controller.UID && slices.Contains(native.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return metav1.DeletePropagationForeground, nil
	}
	return metav1.DeletePropagationBackground, nil
}

// cleanUpCopies deletes the copies, or releases them together with the object.
func (c *remover) cleanUpCopies(ctx context.Context, s *scope.Scope) error {
	if scope.OrphansObject(s.Resource) {
		return c.copies.forEach(ctx, s, c.unmarkObject)
	}
	return c.copies.forEach(ctx, s, c.copies.delete)
}

// finishDeletion deletes the copies, and then removes the finalizer. The finalizer of a
// resource that leaves another target remains until its object is gone there as well.
func (c *remover) finishDeletion(ctx context.Context, s *scope.Scope) error {
	if err := c.cleanUpCopies(ctx, s); err != nil {
		return err
	}
	if s.Resource.Spec.LeavingTargetRef != nil {
		return reconciler.ErrDone
	}
	s.SkipStatus = true
	if err := c.writer.RemoveFinalizer(ctx, s.Resource, v1alpha1.PropagationFinalizer); err != nil {
		return err
	}
	return reconciler.ErrDone
}

// unmarkObject removes Portico's labels, annotations and field ownership from an object.
// It reads the object from the target, because caches do not hold managed fields.
func (c *remover) unmarkObject(ctx context.Context, s *scope.Scope, object *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := s.CallTarget(ctx, func(ctx context.Context) error {
		return s.Connection.Client().Get(ctx, client.ObjectKeyFromObject(object), live)
	})
	if wait := s.RetryOtherVersion(err, live); wait != nil {
		return wait
	}
	if err != nil {
		return s.ProbeIfUnreachable(client.IgnoreNotFound(err))
	}
	before := live.DeepCopy()
	plan.Unmark(live)
	err = s.CallTarget(ctx, func(ctx context.Context) error {
		return s.Connection.Client().Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if wait := s.RetryOtherVersion(err, live); wait != nil {
		return wait
	}
	if client.IgnoreNotFound(err) != nil {
		return s.ProbeIfUnreachable(fmt.Errorf("releasing %s on target %s: %w", object.GetKind(), s.Target.Name, err))
	}
	if err == nil {
		s.LogWrite(ctx, "Released object on target", object, "reason", "the object remains without Portico's marks")
	}
	return nil
}
