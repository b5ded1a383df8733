package propagation

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=delete

// release leaves the object on the target, takes Portico's marks off it, and
// lets the resource go, or deletes it: its native object was deleted with
// --cascade=orphan, or the resource says that its object shall stay.
func (c *Controller) release(ctx context.Context, j *journey) error {
	if j.resource.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(j.resource, v1alpha1.PropagationFinalizer) {
		return errWait // it was released, and waits for others
	}
	if ownerless(j.resource) && j.stranger() {
		j.leaveBehind("the object")
	} else if err := c.disclaim(ctx, j); err != nil {
		return err
	}
	if j.resource.Spec.LeavingTargetRef != nil {
		return errWait // it is released there too
	}
	if err := c.finalize(ctx, j.resource, controllerutil.RemoveFinalizer); client.IgnoreNotFound(err) != nil {
		return err
	}
	j.done = true
	if j.resource.DeletionTimestamp != nil {
		return errWait
	}
	err := c.hub.Delete(ctx, j.resource, client.Preconditions{UID: ptr.To(j.resource.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the released resource %s: %w", client.ObjectKeyFromObject(j.resource), err)
	}
	return errWait
}

// disclaim makes the object, and what it took along, nobody's.
func (c *Controller) disclaim(ctx context.Context, j *journey) error {
	if j.standing.ours() {
		if err := c.unmarkObject(ctx, j, j.desired); err != nil {
			return err
		}
		j.story = append(j.story, narrate.Event{Reason: v1alpha1.EventReleased, Note: fmt.Sprintf(
			"%s stays on target %s, without Portico's marks, and is nobody's", policies.Remote(j.resource), j.target.Name)})
	}
	return c.retract(ctx, j, c.unmarkObject)
}

// marks are the annotations Portico puts on a target's objects.
var marks = []string{
	v1alpha1.ResourceUIDAnnotation, v1alpha1.ResourceNamespaceAnnotation, v1alpha1.ResourceNameAnnotation,
	v1alpha1.HubGenerationAnnotation, v1alpha1.AppliedAnnotation, v1alpha1.CopyAnnotation, v1alpha1.ContentAnnotation,
	v1alpha1.LegacyUIDAnnotation, v1alpha1.LegacyNamespaceAnnotation, v1alpha1.LegacyNameAnnotation,
}

// unmarkObject removes Portico's label, annotations and field ownership, from
// the object as it is now: the cache does not hold managed fields.
func (c *Controller) unmarkObject(ctx context.Context, j *journey, object *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := c.call(ctx, j, func(ctx context.Context) error {
		return j.connection.Client().Get(ctx, client.ObjectKeyFromObject(object), live)
	})
	if err != nil {
		return c.lost(j, client.IgnoreNotFound(err))
	}
	before := live.DeepCopy()
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	delete(labels, v1alpha1.ManagedByLabel)
	for _, mark := range marks {
		delete(annotations, mark)
	}
	live.SetLabels(labels)
	live.SetAnnotations(annotations)
	managers := slices.DeleteFunc(live.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == v1alpha1.PropagationManager
	})
	if len(managers) == 0 {
		managers = []metav1.ManagedFieldsEntry{{}} // the API server's way to say "none"
	}
	live.SetManagedFields(managers)
	err = c.call(ctx, j, func(ctx context.Context) error {
		return j.connection.Client().Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if client.IgnoreNotFound(err) != nil {
		return c.lost(j, fmt.Errorf("releasing %s on target %s: %w", object.GetKind(), j.target.Name, err))
	}
	return nil
}
