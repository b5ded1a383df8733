package application

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// deleteResources deletes the resources that the application made, and keeps the
// application until all of them are gone. Its status names the resources it waits for.
func (c *Controller) deleteResources(ctx context.Context, s *scope) error {
	if !controllerutil.ContainsFinalizer(s.app, v1alpha1.TemplatesFinalizer) {
		return nil
	}
	owned, err := c.listTemplatedResources(ctx, s.app)
	if err != nil {
		return err
	}
	if len(owned) == 0 {
		return c.writer.RemoveFinalizer(ctx, s.app, v1alpha1.TemplatesFinalizer)
	}
	if uid, ok := c.orphaning.UID(client.ObjectKeyFromObject(s.app)); ok && uid == s.app.UID {
		return c.removeOwner(ctx, s.app, owned)
	}
	propagation := metav1.DeletePropagationBackground
	if slices.Contains(s.app.Finalizers, metav1.FinalizerDeleteDependents) {
		propagation = metav1.DeletePropagationForeground
	}
	for i := range owned {
		s.errs = append(s.errs, c.deleteResource(ctx, &owned[i], propagation), c.propagateRelease(ctx, s.app, &owned[i]))
	}
	s.app.Status.State = v1alpha1.StateDeleting
	meta.SetStatusCondition(&s.app.Status.Conditions, metav1.Condition{
		Type: v1alpha1.Synced, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWithdrawing,
		Message: deletionMessage(owned), ObservedGeneration: s.app.Generation,
	})
	return errors.Join(s.errs...)
}

// removeOwner removes the owner reference to an application that is deleted with
// --cascade=orphan from its resources. Their events queue the application again.
func (c *Controller) removeOwner(ctx context.Context, app *v1alpha2.KubernetesApplication, owned []v1alpha1.KubernetesApplicationResource) error {
	var errs []error
	for i := range owned {
		errs = append(errs, c.writer.RemoveOwner(ctx, owned[i].DeepCopy(), app.UID))
	}
	return errors.Join(errs...)
}

// propagateRelease copies the release annotation of an application to a resource that is
// being deleted: the resource gives up its object on an unreachable target.
func (c *Controller) propagateRelease(ctx context.Context, app *v1alpha2.KubernetesApplication, cached *v1alpha1.KubernetesApplicationResource) error {
	if !policies.HasReleaseAnnotation(app) || policies.HasReleaseAnnotation(cached) || cached.DeletionTimestamp == nil {
		return nil
	}
	resource := cached.DeepCopy()
	metav1.SetMetaDataAnnotation(&resource.ObjectMeta, v1alpha1.ReleaseAnnotation, "true")
	_, err := c.writer.Patch(ctx, cached, resource, "releasing with its application", reconciler.Unlocked())
	return err
}

// deletionMessage names the resources that a deleted application waits for, each with
// the reason why it is not gone.
func deletionMessage(owned []v1alpha1.KubernetesApplicationResource) string {
	var waiting []string
	for i := range owned {
		waiting = append(waiting, nameWithReason(owned[i].Name, meta.FindStatusCondition(owned[i].Status.Conditions, v1alpha1.Synced)))
	}
	return fmt.Sprintf("%d resources are still being deleted: %s", len(owned), joinFirst(waiting))
}

// nameWithReason returns the name of a resource, with the reason of a condition that is
// not true.
func nameWithReason(name string, c *metav1.Condition) string {
	if c == nil || c.Status == metav1.ConditionTrue || c.Message == "" {
		return name
	}
	return fmt.Sprintf("%s (%s: %s)", name, c.Reason, policies.Shorten(c.Message, maxReason))
}

// maxReason bounds one message in a list of messages, in bytes.
const maxReason = 200
