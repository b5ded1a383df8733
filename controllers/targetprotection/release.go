package targetprotection

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// releasing is the reason of the writes of a release.
const releasing = "releasing from its target"

// release removes all applications and resources from the target. Nothing is deleted on
// the target: the objects keep their marks, by which Portico finds them when the
// cluster is published again. The finalizer is removed in the reconcile after the last
// resource.
func (c *Controller) release(ctx context.Context, s *scope) error {
	// Applications are first, because they would place their resources on the target
	// again.
	var apps v1alpha2.KubernetesApplicationList
	if err := c.list(ctx, s, &apps); err != nil {
		return err
	}
	for i := range apps.Items {
		if err := c.releaseApplication(ctx, s.key.Name, &apps.Items[i]); err != nil {
			return err
		}
	}
	// The event is emitted before the writes, because a failed release is repeated with
	// fewer resources.
	events.Emit(c.recorder, s.target, "Release", events.Event{Warning: true, Reason: v1alpha1.ReasonTargetReleased,
		Note: fmt.Sprintf("released with %d resources on it; these objects remain on its cluster: %s", len(s.resources), policies.FormatRemoteObjects(s.resources))})
	var errs []error
	for i := range s.resources {
		errs = append(errs, c.releaseResource(ctx, s.key.Name, &s.resources[i]))
	}
	return errors.Join(errs...)
}

func (c *Controller) releaseApplication(ctx context.Context, target string, app *v1alpha2.KubernetesApplication) error {
	if app.DeletionTimestamp != nil {
		return nil
	}
	before := app.DeepCopy()
	app.Spec.TargetRef = nil
	if _, err := c.writer.Patch(ctx, before, app, releasing); err != nil {
		return err
	}
	before = app.DeepCopy()
	meta.SetStatusCondition(&app.Status.Conditions, releasedCondition(target, app.Generation))
	// The application is no longer on the target, so a conflict would not be retried.
	_, err := c.writer.PatchStatus(ctx, before, app, reconciler.Unlocked())
	return err
}

// releaseResource removes a resource from a target. A resource without another target
// loses its finalizer, because nothing has to be deleted for it.
func (c *Controller) releaseResource(ctx context.Context, target string, resource *v1alpha1.KubernetesApplicationResource) error {
	before := resource.DeepCopy()
	spec := &resource.Spec
	if spec.LeavingTargetRef != nil && spec.LeavingTargetRef.Name == target {
		spec.LeavingTargetRef = nil
	}
	unplaced := spec.TargetRef != nil && spec.TargetRef.Name == target
	if unplaced {
		spec.TargetRef = nil
	}
	if spec.TargetRef == nil && spec.LeavingTargetRef == nil {
		controllerutil.RemoveFinalizer(resource, v1alpha1.PropagationFinalizer)
	}
	if _, err := c.writer.Patch(ctx, before, resource, releasing); err != nil {
		return err
	}
	events.Emit(c.recorder, events.Regarding(resource), "Release", events.Event{Warning: true, Reason: v1alpha1.ReasonTargetReleased,
		Note: fmt.Sprintf("target %s was released; %s remains there, and Portico no longer manages it", target, policies.RemoteObjectName(resource))})
	if !unplaced || resource.DeletionTimestamp != nil {
		return nil
	}
	before = resource.DeepCopy()
	resetStatus(&resource.Status, releasedCondition(target, resource.Generation))
	_, err := c.writer.PatchStatus(ctx, before, resource, reconciler.Unlocked()) // as in releaseApplication
	return err
}

// resetStatus removes all information about the previous target from a resource's
// status.
func resetStatus(status *v1alpha1.KubernetesApplicationResourceStatus, released metav1.Condition) {
	status.Drift, status.Observed, status.Ownership = nil, nil, nil
	status.Remote, status.ObservedHubGeneration, status.Target, status.State = nil, 0, "", v1alpha1.StatePending
	for _, condition := range []string{v1alpha1.TargetReachable, v1alpha1.Drifted, v1alpha1.Observed} {
		meta.RemoveStatusCondition(&status.Conditions, condition)
	}
	for _, condition := range []string{v1alpha1.Scheduled, v1alpha1.Synced, v1alpha1.Ready} {
		released.Type = condition
		meta.SetStatusCondition(&status.Conditions, released)
	}
}

// releasedCondition returns the condition of an object that was on a released target.
func releasedCondition(target string, generation int64) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.Scheduled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTargetReleased, ObservedGeneration: generation,
		Message: fmt.Sprintf("target %s was released; its objects remain there", target),
	}
}
