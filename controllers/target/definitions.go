package target

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// servedDelay is the time after which a kind is served whose definition is established.
// The targets are reconciled at once, and again after this delay.
const servedDelay = 2 * time.Second

// definitionMetadata is the metadata of a CustomResourceDefinition. Its name contains the
// group, which is enough to find the targets that may depend on it.
func definitionMetadata() client.Object {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return out
}

// definitionHandler enqueues the targets with a managed cluster of a kind whose definition is
// created, changed or deleted.
func (c *Controller) definitionHandler() handler.EventHandler {
	enqueue := func(object client.Object, q queue) {
		for _, request := range requests(c.copier.TargetsOfDefinition(object.GetName())) {
			q.Add(request)
			q.AddAfter(request, servedDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

func requests(targets []types.NamespacedName) []reconcile.Request {
	var out []reconcile.Request
	for _, target := range targets {
		out = append(out, reconcile.Request{NamespacedName: target})
	}
	return out
}
