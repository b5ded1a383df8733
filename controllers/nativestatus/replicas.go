package nativestatus

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/controllers/reconciler"
)

// The autoscaler on the target sets the replicas there. Portico sets the same number on the
// hub, as an autoscaler of the hub would: otherwise kubectl would compare the Pods of the
// target with another number.

// ScaleTargetIndex finds HorizontalPodAutoscalers by the object that they scale.
const ScaleTargetIndex = "spec.scaleTargetRef"

// IndexScaleTarget is the function of ScaleTargetIndex.
func IndexScaleTarget(object client.Object) []string {
	autoscaler, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	target, _ := kinds.ScaleTargetOf(autoscaler)
	kind, scalable := target.Scalable()
	if !scalable {
		return nil
	}
	return []string{scaleTargetKey(kind, target.Name)}
}

func scaleTargetKey(kind kinds.Kind, name string) string { return kind.Resource() + "/" + name }

// watchScaleTargets enqueues the autoscalers of an object whose replicas changed.
func (c *Controller) watchScaleTargets(b *builder.Builder) *builder.Builder {
	replicas := func(object *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		return n
	}
	changed := reconciler.Updated(func(before, after *unstructured.Unstructured) bool { return replicas(before) != replicas(after) })
	for _, kind := range kinds.All {
		if kind.Properties().HasScale {
			b = b.Watches(kinds.New(kind), handler.EnqueueRequestsFromMapFunc(c.autoscalersOf(kind)), builder.WithPredicates(reconciler.Remote(), changed))
		}
	}
	return b
}

// autoscalersOf lists the autoscalers of an object of a kind.
func (c *Controller) autoscalersOf(kind kinds.Kind) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(c.kind.GroupVersionKind())
		list.SetKind(c.kind.GroupVersionKind().Kind + "List")
		err := c.hub.List(ctx, list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy,
			client.MatchingFields{ScaleTargetIndex: scaleTargetKey(kind, object.GetName())})
		if err != nil {
			return nil // the cache has stopped
		}
		var out []reconcile.Request
		for i := range list.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return out
	}
}

// patchReplicas writes the replicas that an autoscaler has set on the target to the object
// on the hub. An object that a user scaled to zero is not scaled, as on one cluster.
func (c *Controller) patchReplicas(ctx context.Context, s *scope) error {
	target, _ := kinds.ScaleTargetOf(s.native)
	kind, scalable := target.Scalable()
	replicas, scaled := kinds.AutoscaledReplicas(s.observation.Status)
	if !scalable || !scaled {
		return nil
	}
	object := kinds.New(kind)
	key := client.ObjectKey{Namespace: s.native.GetNamespace(), Name: target.Name}
	if found, err := reconciler.Find(ctx, c.hub, key, object); err != nil || !found {
		return err // an object that is not found is not sent
	}
	current, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if !kinds.IsRemote(object) || !kind.Held(object) || found && (current == replicas || current == 0) {
		return nil
	}
	return c.writer.Scale(ctx, object, replicas, "showing the replicas of its target in")
}
