package intake

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments/status,verbs=patch

// A Deployment moves in three steps, each of which may be repeated:
//
//  1. It is labelled, and runs on. Its resource makes the target's copy.
//  2. The copy is available: the Deployment is held. Its controller makes a
//     shadow ReplicaSet, but will not scale the old one down, because it waits
//     for the shadow to scale up.
//  3. So intake scales the old ReplicaSets down, and the move is over.
func (c *Controller) moveIn(ctx context.Context, native *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) (reconcile.Result, error) {
	deployment := kinds.Deployment{}
	intent, _, err := kinds.IntentOf(native)
	if err != nil {
		return reconcile.Result{}, c.refuse(native, err)
	}
	switch {
	case !deployment.Held(native):
		paused, _, _ := unstructured.NestedBool(native.Object, "spec", "paused")
		if paused || !available(native, resource) {
			return reconcile.Result{}, nil // the resource's change, or the user's, goes on
		}
		held := deployment.SetHeld(native, true)
		if err := c.hub.Patch(ctx, held, client.MergeFromWithOptions(native, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.IntakeManager)); err != nil {
			return reconcile.Result{}, fmt.Errorf("holding Deployment %s: %w", client.ObjectKeyFromObject(native), err)
		}
		narrate.Tell(c.recorder, native, "Move", narrate.Event{Reason: v1alpha1.EventMovingIn,
			Note: fmt.Sprintf("target %s is available; stopping the Pods here", resource.Spec.TargetRef.Name)})
		return reconcile.Result{}, nil
	case intent.Moving:
		return c.stopHere(ctx, native)
	default:
		return reconcile.Result{}, nil
	}
}

// available tells whether the target's copy of this generation is ready.
func available(native *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) bool {
	return meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.Ready) &&
		meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.TargetReachable) &&
		resource.Status.ObservedHubGeneration >= native.GetGeneration()
}

// stopHere scales down the ReplicaSets that ran before the move.
func (c *Controller) stopHere(ctx context.Context, native *unstructured.Unstructured) (reconcile.Result, error) {
	replicaSets, err := c.replicaSets(ctx, native)
	if err != nil {
		return reconcile.Result{}, err
	}
	shadowed, running := false, false
	for i := range replicaSets {
		shadowed = shadowed || kinds.IsShadow(&replicaSets[i])
	}
	if !shadowed { // the Deployment controller would scale them up again
		return reconcile.Result{RequeueAfter: soon / 4}, nil
	}
	for i := range replicaSets {
		rs := &replicaSets[i]
		if kinds.IsShadow(rs) || ptr.Deref(rs.Spec.Replicas, 1) == 0 {
			continue
		}
		running = true
		before := rs.DeepCopy()
		rs.Spec.Replicas = ptr.To(int32(0))
		if err := c.hub.Patch(ctx, rs, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.IntakeManager)); err != nil {
			return reconcile.Result{}, fmt.Errorf("stopping ReplicaSet %s: %w", client.ObjectKeyFromObject(rs), err)
		}
	}
	if running {
		return reconcile.Result{RequeueAfter: soon / 4}, nil
	}
	settled := kinds.Deployment{}.SetHeld(native, false)
	if err := c.hub.Patch(ctx, settled, client.MergeFromWithOptions(native, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.IntakeManager)); err != nil {
		return reconcile.Result{}, fmt.Errorf("ending the move of Deployment %s: %w", client.ObjectKeyFromObject(native), err)
	}
	narrate.Tell(c.recorder, native, "Move", narrate.Event{Reason: v1alpha1.EventMoved, Note: "runs on its target only"})
	return reconcile.Result{}, nil
}

// home brings an object back whose label was removed: the hub's copy is
// available before the target's goes, and what Portico wrote here goes too.
func (c *Controller) home(ctx context.Context, native *unstructured.Unstructured) (reconcile.Result, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: native.GetNamespace(), Name: kinds.ResourceName(native.GetKind(), native.GetName())}
	if err := c.hub.Get(ctx, key, resource); err != nil {
		if apierrors.IsNotFound(err) && c.turned.forget(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(native)}) {
			err = c.forgetProblems(ctx, native)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(resource, native) || resource.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if c.kind == (kinds.Deployment{}) {
		ready, err := c.startHere(ctx, native)
		if err != nil || !ready {
			return reconcile.Result{RequeueAfter: soon}, err
		}
	}
	if kinds.HasContent(c.kind.GroupVersionKind()) {
		if needed, err := c.stillNeeded(ctx, native); err != nil || needed {
			return reconcile.Result{RequeueAfter: soon}, err
		}
	}
	if err := c.forgetProblems(ctx, native); err != nil {
		return reconcile.Result{}, err
	}
	if err := c.hub.Delete(ctx, resource, client.Preconditions{UID: &resource.UID}); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("withdrawing resource %s: %w", key, err)
	}
	note := "runs here again; its copy on the target is being deleted"
	if kinds.HasContent(c.kind.GroupVersionKind()) {
		note = "stays here; its copy on the target is being deleted"
	}
	narrate.Tell(c.recorder, native, "Move", narrate.Event{Reason: v1alpha1.EventHome, Note: note})
	return reconcile.Result{}, nil
}

// startHere turns a Deployment's shadows back into ordinary ReplicaSets, and
// tells whether the Deployment is available on the hub. A shadow of the current
// template is deleted: the Deployment controller has made, or will make, the
// real one.
func (c *Controller) startHere(ctx context.Context, native *unstructured.Unstructured) (bool, error) {
	replicaSets, err := c.replicaSets(ctx, native)
	if err != nil {
		return false, err
	}
	shadows := 0
	for i := range replicaSets {
		if kinds.IsShadow(&replicaSets[i]) {
			shadows++
		}
		if err := c.restore(ctx, native, &replicaSets[i]); err != nil {
			return false, err
		}
	}
	return policies.ReadinessOf(native, "").Works() && shadows == 0, nil
}

// restore takes from a ReplicaSet what came from Portico: the label, and the
// annotation that the Deployment controller copied from the Deployment.
func (c *Controller) restore(ctx context.Context, native *unstructured.Unstructured, rs *appsv1.ReplicaSet) error {
	shadow := kinds.IsShadow(rs)
	if _, marked := rs.Annotations[v1alpha1.IntentAnnotation]; !shadow && !marked {
		return nil
	}
	before := rs.DeepCopy()
	delete(rs.Labels, v1alpha1.ScheduleLabel)
	delete(rs.Spec.Template.Labels, v1alpha1.ScheduleLabel)
	delete(rs.Annotations, v1alpha1.IntentAnnotation)
	var err error
	if shadow && current(native, rs) {
		err = c.hub.Delete(ctx, rs, client.Preconditions{UID: &rs.UID})
	} else {
		err = c.hub.Patch(ctx, rs, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.IntakeManager))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("restoring ReplicaSet %s: %w", client.ObjectKeyFromObject(rs), err)
	}
	return nil
}

// replicaSets lists a Deployment's, from the API server: those that are not
// shadows are not in the cache.
func (c *Controller) replicaSets(ctx context.Context, native *unstructured.Unstructured) ([]appsv1.ReplicaSet, error) {
	matchLabels, _, _ := unstructured.NestedStringMap(native.Object, "spec", "selector", "matchLabels")
	var list appsv1.ReplicaSetList
	if err := c.live.List(ctx, &list, client.InNamespace(native.GetNamespace()), client.MatchingLabels(matchLabels)); err != nil {
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

// forgetProblems removes the conditions Portico wrote.
func (c *Controller) forgetProblems(ctx context.Context, native *unstructured.Unstructured) error {
	conditions, found := kinds.WithoutProblems(native)
	if !found {
		return nil
	}
	before := native.DeepCopy()
	if err := unstructured.SetNestedSlice(native.Object, conditions, "status", "conditions"); err != nil {
		return fmt.Errorf("clearing the conditions of %s: %w", client.ObjectKeyFromObject(native), err)
	}
	if err := c.hub.Status().Patch(ctx, native, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.IntakeManager)); err != nil {
		return fmt.Errorf("clearing the conditions of %s: %w", client.ObjectKeyFromObject(native), err)
	}
	return nil
}
