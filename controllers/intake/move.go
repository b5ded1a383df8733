package intake

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
)

// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch;patch;delete

// moveToTarget moves a Deployment that ran on the hub, in three steps. Each step may run
// several times:
//
//  1. The Deployment gets the label, and its Pods stay. Its resource makes the object on
//     the target.
//  2. The object on the target is available: the Deployment is held. Its controller makes
//     a held ReplicaSet, but does not scale down the old ReplicaSet, because it waits
//     for the held one to scale up.
//  3. Intake scales down the old ReplicaSets, and the move ends.
func (c *Controller) moveToTarget(ctx context.Context, s *scope) error {
	deployment := kinds.Deployment{}
	if c.kind != deployment {
		return nil
	}
	intent, _, err := kinds.IntentOf(s.native)
	if err != nil {
		return c.rejectNative(ctx, s.native, err)
	}
	switch {
	case !deployment.Held(s.native):
		return c.hold(ctx, s)
	case intent.Moving:
		return c.stopOnHub(ctx, s.native)
	}
	return nil
}

// hold holds a Deployment whose object on the target is available.
func (c *Controller) hold(ctx context.Context, s *scope) error {
	paused, _, _ := unstructured.NestedBool(s.native.Object, "spec", "paused")
	if paused || !isAvailableOnTarget(s.native, s.resource) {
		ctrl.LoggerFrom(ctx).V(2).Info("Skipped move", "reason", "the Deployment is paused, or not available on the target")
		return reconciler.ErrDone // an update of the resource or of the Deployment continues the move
	}
	held := kinds.Deployment{}.SetHeld(s.native, true)
	written, err := c.writer.Patch(ctx, s.native, held, "holding")
	if written {
		events.Emit(c.recorder, s.native, "Move", events.Event{Reason: v1alpha1.EventMovingIn,
			Note: fmt.Sprintf("target %s has the Deployment available; its Pods on the hub are stopped now", s.resource.Spec.TargetRef.Name)})
	}
	return err
}

// isAvailableOnTarget tells whether this generation of a Deployment is available on the
// target.
func isAvailableOnTarget(native *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) bool {
	return meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.Ready) &&
		meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.TargetReachable) &&
		resource.Status.ObservedHubGeneration >= native.GetGeneration()
}

// stopOnHub scales down the ReplicaSets that ran before the move.
func (c *Controller) stopOnHub(ctx context.Context, native *unstructured.Unstructured) error {
	replicaSets, err := c.replicaSets(ctx, native)
	if err != nil {
		return err
	}
	hasHeld, running := false, false
	for i := range replicaSets {
		hasHeld = hasHeld || kinds.IsHeldReplicaSet(&replicaSets[i])
	}
	if !hasHeld { // otherwise the Deployment controller would scale them up again
		return reconciler.RequeueAfter(rolloutRequeueAfter / 4)
	}
	for i := range replicaSets {
		rs := &replicaSets[i]
		if kinds.IsHeldReplicaSet(rs) || ptr.Deref(rs.Spec.Replicas, 1) == 0 {
			continue
		}
		running = true
		before := rs.DeepCopy()
		rs.Spec.Replicas = ptr.To(int32(0))
		if _, err := c.writer.Patch(ctx, before, rs, "stopping after the move"); err != nil {
			return err
		}
	}
	if running {
		return reconciler.RequeueAfter(rolloutRequeueAfter / 4)
	}
	moved := kinds.Deployment{}.SetHeld(native, false)
	written, err := c.writer.Patch(ctx, native, moved, "ending the move of")
	if written {
		events.Emit(c.recorder, native, "Move", events.Event{Reason: v1alpha1.EventMoved, Note: "runs only on its target"})
	}
	return err
}

// replicaSets lists the ReplicaSets of a Deployment from the API server, because the
// cache only has held ones.
func (c *Controller) replicaSets(ctx context.Context, native *unstructured.Unstructured) ([]appsv1.ReplicaSet, error) {
	return listReplicaSets(ctx, c.live, native)
}

// listReplicaSets lists the ReplicaSets that a Deployment controls.
func listReplicaSets(ctx context.Context, from client.Reader, native *unstructured.Unstructured) ([]appsv1.ReplicaSet, error) {
	matchLabels, _, _ := unstructured.NestedStringMap(native.Object, "spec", "selector", "matchLabels")
	var list appsv1.ReplicaSetList
	if err := from.List(ctx, &list, client.InNamespace(native.GetNamespace()), client.MatchingLabels(matchLabels)); err != nil {
		return nil, fmt.Errorf("listing the ReplicaSets of Deployment %s: %w", client.ObjectKeyFromObject(native), err)
	}
	var out []appsv1.ReplicaSet
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], native) {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}
