package intake

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
)

// moveToTarget moves an object whose Pods ran on the hub, in three steps. Each step may
// run several times:
//
//  1. The object gets the label, and its Pods stay. Its resource makes the object on the
//     target.
//  2. The object on the target is available: the object is held. The controller of a
//     Deployment makes a held ReplicaSet, but does not scale down the old ReplicaSet,
//     because it waits for the held one to scale up.
//  3. Intake scales down the old ReplicaSets of a Deployment, and deletes the Pods of
//     other kinds. The move ends.
func (c *Controller) moveToTarget(ctx context.Context, s *scope) error {
	workload, ok := c.kind.(kinds.Workload)
	if !ok {
		return nil
	}
	intent, _, err := kinds.IntentOf(s.native)
	if err != nil {
		return c.rejectNative(ctx, s.native, err)
	}
	switch {
	case !workload.Held(s.native):
		return c.hold(ctx, s, workload)
	case intent.Moving:
		return c.endMove(ctx, s.native, workload)
	}
	return nil
}

// hold holds an object whose object on the target is available.
func (c *Controller) hold(ctx context.Context, s *scope, workload kinds.Workload) error {
	paused, _, _ := unstructured.NestedBool(s.native.Object, "spec", "paused")
	if paused || !isAvailableOnTarget(s.native, s.resource) {
		ctrl.LoggerFrom(ctx).V(2).Info("Skipped move", "reason", "the object is paused, or not available on the target")
		return reconciler.ErrDone // an update of the resource or of the object continues the move
	}
	held := kinds.SetHeld(workload, s.native, true)
	written, err := c.writer.Patch(ctx, s.native, held, "holding")
	if written {
		events.Emit(c.recorder, s.native, "Move", events.Event{Reason: v1alpha1.EventMovingIn,
			Note: fmt.Sprintf("target %s has the %s available; its Pods on the hub are stopped now", s.resource.Spec.TargetRef.Name, s.native.GetKind())})
	}
	return err
}

// isAvailableOnTarget tells whether this generation of an object is available on the
// target.
func isAvailableOnTarget(native *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) bool {
	return meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.Ready) &&
		meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.TargetReachable) &&
		resource.Status.ObservedHubGeneration >= native.GetGeneration()
}

// endMove stops the Pods on the hub, and ends the move when there are none.
func (c *Controller) endMove(ctx context.Context, native *unstructured.Unstructured, workload kinds.Workload) error {
	stop := c.pods.stop
	if c.kind == (kinds.Deployment{}) {
		stop = c.replicaSets.stop
	}
	if stopped, err := stop(ctx, native); err != nil || !stopped {
		return err
	}
	written, err := c.writer.Patch(ctx, native, kinds.SetHeld(workload, native, false), "ending the move of")
	if written {
		events.Emit(c.recorder, native, "Move", events.Event{Reason: v1alpha1.EventMoved, Note: "runs only on its target"})
	}
	return err
}
