package propagation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// withdraw deletes the object from the target, the way its native object is
// being deleted, and lets the resource go once it is gone.
func (c *Controller) withdraw(ctx context.Context, j *journey) error {
	if !controllerutil.ContainsFinalizer(j.resource, v1alpha1.PropagationFinalizer) {
		return errWait
	}
	if !j.standing.ours() {
		return c.letGo(ctx, j)
	}
	j.resource.Status.State = v1alpha1.StateDeleting
	if _, errs := policies.DeletionOf(j.resource); len(errs) > 0 { // admission was away, and nobody may guess
		j.await(fmt.Sprintf("%s %s is not deleted on target %s before this is corrected: %s", j.desired.GetKind(), j.desired.GetName(), j.target.Name, errs.ToAggregate()))
		return errWait
	}
	if bequeathed, err := c.bequeath(ctx, j); err != nil {
		return err
	} else if bequeathed {
		return errWait
	}
	j.set(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonWithdrawing,
		fmt.Sprintf("%s %s is being deleted on target %s", j.desired.GetKind(), j.desired.GetName(), j.target.Name))
	if keeping := keepers(j.observed); keeping != "" && j.observed.GetDeletionTimestamp() != nil {
		j.await(fmt.Sprintf("%s %s is being deleted on target %s, and is kept there by finalizers: %s", j.desired.GetKind(), j.desired.GetName(), j.target.Name, keeping))
	}
	gone, err := c.remove(ctx, j)
	if err != nil {
		return err
	}
	if gone {
		return c.letGo(ctx, j)
	}
	return errWait
}

// await says what a deletion waits for, and tells it once.
func (j *journey) await(message string) {
	if j.done { // it is told in the lane of the other target
		return
	}
	was := meta.FindStatusCondition(j.before.Status.Conditions, v1alpha1.Synced)
	if was == nil || was.Message != message {
		j.story = append(j.story, narrate.Event{Warning: true, Reason: v1alpha1.EventWaiting, Note: message})
	}
	j.resource.Status.State = v1alpha1.StateDeleting
	j.set(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonWithdrawing, message)
}

// keepers are the finalizers that others put on an object.
func keepers(object *unstructured.Unstructured) string {
	return strings.Join(slices.DeleteFunc(object.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	}), ", ")
}

// remove deletes the object from the target, and tells whether it was gone
// already, or is another object now.
func (c *Controller) remove(ctx context.Context, j *journey) (gone bool, err error) {
	if j.observed.GetDeletionTimestamp() != nil {
		return false, nil // its deletion is an event
	}
	policy, err := c.propagationPolicy(ctx, j.resource)
	if err != nil {
		return false, err
	}
	err = c.call(ctx, j, func(ctx context.Context) error {
		return j.connection.Client().Delete(ctx, j.observed,
			client.Preconditions{UID: ptr.To(j.observed.GetUID())}, client.PropagationPolicy(policy))
	})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return false, c.lost(j, fmt.Errorf("deleting %s on target %s: %w", j.desired.GetKind(), j.target.Name, err))
	}
	return err != nil, nil
}

// propagationPolicy is how the user deletes the native object: in the
// foreground it stays until everything below is gone, there as here.
func (c *Controller) propagationPolicy(ctx context.Context, resource *v1alpha1.KubernetesApplicationResource) (metav1.DeletionPropagation, error) {
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
	// Not from the cache, which may hear of the resource's deletion first.
	err := c.live.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: controller.Name}, native)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the owner of resource %s: %w", client.ObjectKeyFromObject(resource), err)
	}
	if err == nil && native.GetUID() == controller.UID && slices.Contains(native.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return metav1.DeletePropagationForeground, nil
	}
	return metav1.DeletePropagationBackground, nil
}

// letGo removes the finalizer: nothing of the resource is left on the target,
// once what it took along is gone as well. One that is leaving another target
// stays until nothing is left there either.
func (c *Controller) letGo(ctx context.Context, j *journey) error {
	finish := c.discard
	if orphaned(j.resource) {
		finish = c.unmarkObject
	}
	if err := c.retract(ctx, j, finish); err != nil {
		return err
	}
	if j.resource.Spec.LeavingTargetRef != nil {
		return errWait
	}
	j.done = true
	if err := c.finalize(ctx, j.resource, controllerutil.RemoveFinalizer); client.IgnoreNotFound(err) != nil {
		return err
	}
	return errWait
}
