package application

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// withdraw deletes what an application made, and keeps the application until all
// that is gone, so that whoever deletes it sees what it waits for.
func (c *Controller) withdraw(ctx context.Context, app *v1alpha2.KubernetesApplication) error {
	if !controllerutil.ContainsFinalizer(app, v1alpha1.TemplatesFinalizer) {
		return nil
	}
	if slices.Contains(app.Finalizers, metav1.FinalizerOrphanDependents) {
		return nil // garbage collection takes the application's name off its resources first
	}
	owned, err := c.owned(ctx, app)
	if err != nil {
		return err
	}
	if len(owned) == 0 {
		return c.finalize(ctx, app, controllerutil.RemoveFinalizer)
	}
	how := metav1.DeletePropagationBackground
	if slices.Contains(app.Finalizers, metav1.FinalizerDeleteDependents) {
		how = metav1.DeletePropagationForeground
	}
	var errs []error
	for i := range owned {
		errs = append(errs, c.discard(ctx, &owned[i], how), c.release(ctx, app, &owned[i]))
	}
	before := app.DeepCopy()
	app.Status.State = v1alpha1.StateDeleting
	meta.SetStatusCondition(&app.Status.Conditions, metav1.Condition{
		Type: v1alpha1.Synced, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWithdrawing,
		Message: leavingBehind(owned), ObservedGeneration: app.Generation,
	})
	if !equality.Semantic.DeepEqual(before.Status, app.Status) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		errs = append(errs, client.IgnoreNotFound(c.hub.Status().Patch(ctx, app, patch, client.FieldOwner(v1alpha1.ApplicationManager))))
	}
	return errors.Join(errs...)
}

// release passes on that what the application has on a target that is away is given
// up, once the resource is being deleted.
func (c *Controller) release(ctx context.Context, app *v1alpha2.KubernetesApplication, resource *v1alpha1.KubernetesApplicationResource) error {
	if !policies.Released(app) || policies.Released(resource) || resource.DeletionTimestamp == nil {
		return nil
	}
	before := resource.DeepCopy()
	metav1.SetMetaDataAnnotation(&resource.ObjectMeta, v1alpha1.ReleaseAnnotation, "true")
	if err := c.hub.Patch(ctx, resource, client.MergeFrom(before), client.FieldOwner(v1alpha1.ApplicationManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("giving up resource %s: %w", resource.Name, err))
	}
	return nil
}

// leavingBehind says what an application that is being deleted waits for, and on
// what each of that waits in turn.
func leavingBehind(owned []v1alpha1.KubernetesApplicationResource) string {
	var waits []string
	for i := range owned {
		waits = append(waits, reasoned(owned[i].Name, meta.FindStatusCondition(owned[i].Status.Conditions, v1alpha1.Synced)))
	}
	return fmt.Sprintf("%d resources are still being deleted: %s", len(owned), some(waits))
}

// reasoned names a resource, and why it is not what it should be.
func reasoned(name string, c *metav1.Condition) string {
	if c == nil || c.Status == metav1.ConditionTrue || c.Message == "" {
		return name
	}
	return fmt.Sprintf("%s (%s: %s)", name, c.Reason, brief(c.Message))
}

// brief shortens a message that is one of many.
func brief(message string) string {
	const most = 200
	if r := []rune(message); len(r) > most {
		return string(r[:most]) + "..."
	}
	return message
}
