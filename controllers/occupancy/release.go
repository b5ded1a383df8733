package occupancy

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// release lets go of everything that is on a target. Nothing is deleted there: its
// marks stay, and by them it is found again when the cluster is published anew.
func (c *Controller) release(ctx context.Context, target *v1alpha1.KubernetesTarget, on []v1alpha1.KubernetesApplicationResource) error {
	// The applications first: they would place their resources there again.
	var apps v1alpha2.KubernetesApplicationList
	if err := c.hub.List(ctx, &apps, client.InNamespace(target.Namespace)); err != nil {
		return fmt.Errorf("listing the applications on target %s: %w", target.Name, err)
	}
	for i := range apps.Items {
		if err := c.unplace(ctx, target.Name, &apps.Items[i]); err != nil {
			return err
		}
	}
	// Told before it is done: what fails halfway is tried again, with fewer left.
	narrate.Tell(c.recorder, target, "Release", narrate.Event{Warning: true, Reason: v1alpha1.ReasonTargetReleased,
		Note: fmt.Sprintf("given up with %d resources on it; on its cluster stays behind: %s", len(on), policies.LeftBehind(on))})
	var errs []error
	for i := range on {
		errs = append(errs, c.letGo(ctx, target.Name, &on[i]))
	}
	return errors.Join(errs...)
}

func (c *Controller) unplace(ctx context.Context, target string, app *v1alpha2.KubernetesApplication) error {
	if app.Spec.TargetRef == nil || app.Spec.TargetRef.Name != target || app.DeletionTimestamp != nil {
		return nil
	}
	before := app.DeepCopy()
	app.Spec.TargetRef = nil
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Patch(ctx, app, patch, client.FieldOwner(v1alpha1.TargetManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("taking application %s off target %s: %w", app.Name, target, err))
	}
	before = app.DeepCopy()
	meta.SetStatusCondition(&app.Status.Conditions, condition(target, app.Generation))
	// Not locked: what fails now is not tried again, because nothing is placed there any more.
	if err := c.hub.Status().Patch(ctx, app, client.MergeFrom(before), client.FieldOwner(v1alpha1.TargetManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of application %s: %w", app.Name, err))
	}
	return nil
}

// letGo takes a resource off a target. One that is on no other then needs nobody
// to wait for it.
func (c *Controller) letGo(ctx context.Context, target string, resource *v1alpha1.KubernetesApplicationResource) error {
	before := resource.DeepCopy()
	spec := &resource.Spec
	if spec.LeavingTargetRef != nil && spec.LeavingTargetRef.Name == target {
		spec.LeavingTargetRef = nil
	}
	homeless := spec.TargetRef != nil && spec.TargetRef.Name == target
	if homeless {
		spec.TargetRef = nil
	}
	if spec.TargetRef == nil && spec.LeavingTargetRef == nil {
		controllerutil.RemoveFinalizer(resource, v1alpha1.PropagationFinalizer)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Patch(ctx, resource, patch, client.FieldOwner(v1alpha1.TargetManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("taking resource %s off target %s: %w", resource.Name, target, err))
	}
	what := policies.Remote(resource)
	ctrl.LoggerFrom(ctx).Info("Left behind on a released target", "resource", resource.Name, "object", what)
	narrate.Tell(c.recorder, narrate.Subject(resource), "Release", narrate.Event{Warning: true, Reason: v1alpha1.ReasonTargetReleased,
		Note: fmt.Sprintf("target %s was given up; %s stays behind there, and Portico no longer looks after it", target, what)})
	if !homeless || resource.DeletionTimestamp != nil {
		return nil
	}
	before = resource.DeepCopy()
	status := &resource.Status
	status.Drift, status.Observed, status.Ownership = nil, nil, nil
	status.Remote, status.ObservedHubGeneration, status.Target, status.State = nil, 0, "", v1alpha1.StatePending
	for _, kind := range []string{v1alpha1.TargetReachable, v1alpha1.Drifted, v1alpha1.Observed} {
		meta.RemoveStatusCondition(&status.Conditions, kind)
	}
	gone := condition(target, resource.Generation)
	for _, kind := range []string{v1alpha1.Scheduled, v1alpha1.Synced, v1alpha1.Ready} {
		gone.Type = kind
		meta.SetStatusCondition(&status.Conditions, gone)
	}
	if err := c.hub.Status().Patch(ctx, resource, client.MergeFrom(before), client.FieldOwner(v1alpha1.TargetManager)); err != nil { // not locked, see above
		return client.IgnoreNotFound(fmt.Errorf("writing the status of resource %s: %w", resource.Name, err))
	}
	return nil
}
