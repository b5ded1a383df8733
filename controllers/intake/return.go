package intake

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// returnToHub returns an object without the label to the hub. Its Pods are available on
// the hub before its object on the target is deleted.
func (c *Controller) returnToHub(ctx context.Context, native *unstructured.Unstructured) (reconcile.Result, error) {
	return reconciler.Run(ctx, &scope{native: native}, []reconciler.Step[*scope]{
		{Name: "get resource", Run: c.getResource},
		{Name: "start on hub", Run: c.startOnHub},
		{Name: "wait for dependents", Run: c.waitForDependents},
		{Name: "clear conditions", Run: c.clearConditions},
		{Name: "delete resource", Run: c.deleteResource},
	}, nil)
}

// getResource reads the resource of an object that returns to the hub. An object without
// one is on the hub already.
func (c *Controller) getResource(ctx context.Context, s *scope) error {
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := resourceKey(s.native)
	err := c.hub.Get(ctx, key, resource)
	switch {
	case apierrors.IsNotFound(err):
		if c.denials.remove(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.native)}) {
			if err := c.clearConditions(ctx, s); err != nil {
				return err
			}
		}
		return reconciler.ErrDone
	case err != nil:
		return fmt.Errorf("reading resource %s: %w", key, err)
	case !metav1.IsControlledBy(resource, s.native) || resource.DeletionTimestamp != nil:
		return reconciler.ErrDone
	}
	s.resource = resource
	return nil
}

// startOnHub starts an object on the hub, and waits until it is available there.
func (c *Controller) startOnHub(ctx context.Context, s *scope) error {
	available, err := c.startNative(ctx, s.native)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(s.native)
	if !available { // no cache has the object, so there is no event
		ctrl.LoggerFrom(ctx).V(2).Info("Skipped deletion of resource", "reason", "the object is not available on the hub")
		return reconciler.RequeueAfter(c.returnBackoff.When(key))
	}
	return nil
}

// startNative starts an object on the hub, and tells whether it is available there. The
// held ReplicaSets of a Deployment become ordinary ReplicaSets.
func (c *Controller) startNative(ctx context.Context, native *unstructured.Unstructured) (bool, error) {
	switch c.kind {
	case kinds.Pod{}:
		return c.pods.start(ctx, native)
	case kinds.Job{}:
		if !kinds.IsFinished(native) {
			return false, c.rejectNative(ctx, native, errCannotReturn)
		}
	}
	if _, ok := c.kind.(kinds.Workload); !ok {
		return true, nil
	}
	available := policies.ReadinessOf(native, "").IsReady()
	if c.kind != (kinds.Deployment{}) {
		return available, nil
	}
	restored, err := c.replicaSets.restore(ctx, native, available)
	return available && restored, err
}

// waitForDependents waits until no object on the target refers to a Secret or ConfigMap
// under its own name.
func (c *Controller) waitForDependents(ctx context.Context, s *scope) error {
	if !kinds.HasContent(c.kind.GroupVersionKind()) {
		return nil
	}
	referenced, err := c.isReferencedOnTarget(ctx, s.native)
	if err != nil || !referenced {
		return err
	}
	ctrl.LoggerFrom(ctx).V(2).Info("Skipped deletion of resource", "reason", "objects on the target refer to it")
	return reconciler.RequeueAfter(rolloutRequeueAfter)
}

// clearConditions removes the conditions of Portico from the native object.
func (c *Controller) clearConditions(ctx context.Context, s *scope) error {
	conditions, found := kinds.WithoutProblems(s.native)
	if !found {
		return nil
	}
	before := s.native.DeepCopy()
	if err := unstructured.SetNestedSlice(s.native.Object, conditions, "status", "conditions"); err != nil {
		return fmt.Errorf("clearing the conditions of %s: %w", client.ObjectKeyFromObject(s.native), err)
	}
	_, err := c.writer.PatchStatus(ctx, before, s.native)
	return err
}

// deleteResource deletes the resource, and with it the object on the target.
func (c *Controller) deleteResource(ctx context.Context, s *scope) error {
	c.returnBackoff.Forget(client.ObjectKeyFromObject(s.native))
	if err := c.writer.Delete(ctx, s.resource, "returning its object to the hub", client.Preconditions{UID: &s.resource.UID}); err != nil {
		return err
	}
	note := "runs on the hub again; the object on the target is being deleted"
	if kinds.HasContent(c.kind.GroupVersionKind()) {
		note = "remains on the hub; the object on the target is being deleted"
	}
	events.Emit(c.recorder, s.native, "Move", events.Event{Reason: v1alpha1.EventMovedToHub, Note: note})
	return nil
}
