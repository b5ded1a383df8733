package target

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// served is how long after its definition says so a kind is served for certain.
// It is looked for at once, too.
const served = 2 * time.Second

// definition is the metadata of a CustomResourceDefinition. Its name has the
// group, which is enough to know whom it may matter to.
func definition() client.Object {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return out
}

// definitions looks at the targets that name a cluster of a kind that comes,
// goes or changes.
func (c *Controller) definitions() handler.EventHandler {
	look := func(object client.Object, q queue) {
		for _, request := range requests(c.publisher.OfDefinition(object.GetName())) {
			q.Add(request)
			q.AddAfter(request, served)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { look(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { look(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { look(e.Object, q) },
	}
}

func requests(targets []types.NamespacedName) []reconcile.Request {
	var out []reconcile.Request
	for _, target := range targets {
		out = append(out, reconcile.Request{NamespacedName: target})
	}
	return out
}
