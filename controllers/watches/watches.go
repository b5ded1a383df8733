// Package watches watches kinds that nobody knew when Portico was built. A watch
// begins when somebody first needs its kind, and ends with the last who does.
package watches

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// Refused is why a kind cannot be watched: the verb, and the API server's answer.
type Refused struct {
	Verb string
	Err  error
}

func (r *Refused) Error() string { return r.Verb + ": " + r.Err.Error() }

// Unwrap is the API server's answer.
func (r *Refused) Unwrap() error { return r.Err }

// Options of a set of watches.
type Options struct {
	// Client of the hub.
	Client dynamic.Interface
	// Trim returns what of an object matters; only that is kept, and only when
	// that changes is a change told.
	Trim func(*unstructured.Unstructured) *unstructured.Unstructured
	// Changed is told of an object that came, went or changed.
	Changed func(kind schema.GroupVersionResource, object types.NamespacedName)
	// Lost is told when a watch ended by itself: its kind is no longer served, or
	// may no longer be read.
	Lost func(kind schema.GroupVersionResource)
}

// Watches are the watches that run.
type Watches struct {
	life    context.Context //nolint:containedctx // of the watches
	options Options

	mu      sync.Mutex
	running map[schema.GroupVersionResource]context.CancelFunc
	needs   map[types.NamespacedName]schema.GroupVersionResource
}

// New returns a set of watches that ends with life.
func New(life context.Context, o Options) *Watches {
	return &Watches{
		life: life, options: o,
		running: map[schema.GroupVersionResource]context.CancelFunc{},
		needs:   map[types.NamespacedName]schema.GroupVersionResource{},
	}
}

// Need keeps a kind watched for somebody, until they need another or Release.
// It fails with a Refused when the kind cannot be watched.
func (w *Watches) Need(ctx context.Context, who types.NamespacedName, kind schema.GroupVersionResource) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.needs[who]; ok && before != kind {
		w.release(who)
	}
	w.needs[who] = kind
	if w.running[kind] != nil {
		return nil
	}
	// An informer only logs that it is refused, so ask first.
	if err := w.probe(ctx, kind); err != nil {
		return err
	}
	w.start(kind)
	return nil
}

// Release ends what is watched for nobody else.
func (w *Watches) Release(who types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release(who)
}

func (w *Watches) release(who types.NamespacedName) {
	kind, ok := w.needs[who]
	if !ok {
		return
	}
	delete(w.needs, who)
	for _, other := range w.needs {
		if other == kind {
			return
		}
	}
	w.stop(kind)
}

// Running lists the kinds that are watched.
func (w *Watches) Running() []schema.GroupVersionResource {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []schema.GroupVersionResource
	for kind := range w.running {
		out = append(out, kind)
	}
	return out
}

func (w *Watches) stop(kind schema.GroupVersionResource) bool {
	cancel := w.running[kind]
	if cancel == nil {
		return false
	}
	cancel()
	delete(w.running, kind)
	return true
}

func (w *Watches) probe(ctx context.Context, kind schema.GroupVersionResource) error {
	if _, err := w.options.Client.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return &Refused{Verb: "list", Err: err}
	}
	events, err := w.options.Client.Resource(kind).Watch(ctx, metav1.ListOptions{TimeoutSeconds: ptr.To[int64](1)})
	if err != nil {
		return &Refused{Verb: "watch", Err: err}
	}
	events.Stop()
	return nil
}

func (w *Watches) start(kind schema.GroupVersionResource) {
	ctx, cancel := context.WithCancel(w.life)
	informer := dynamicinformer.NewFilteredDynamicInformer(w.options.Client, kind, metav1.NamespaceAll, 0, nil, nil).Informer()
	// Neither can fail on an informer that has not started.
	_ = informer.SetTransform(func(object any) (any, error) {
		if resource, ok := object.(*unstructured.Unstructured); ok {
			return w.trim(resource), nil
		}
		return object, nil
	})
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		w.mu.Lock()
		lost := ctx.Err() == nil && w.stop(kind)
		w.mu.Unlock()
		if lost {
			w.options.Lost(kind)
		}
	})
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { w.tell(kind, object) },
		UpdateFunc: func(before, after any) {
			if !same(before, after) {
				w.tell(kind, after)
			}
		},
		DeleteFunc: func(object any) { w.tell(kind, object) },
	})
	w.running[kind] = cancel
	go informer.RunWithContext(ctx)
}

// trim keeps the resource version too, by which a watch goes on.
func (w *Watches) trim(resource *unstructured.Unstructured) *unstructured.Unstructured {
	trimmed := w.options.Trim(resource)
	trimmed.SetResourceVersion(resource.GetResourceVersion())
	return trimmed
}

func same(before, after any) bool {
	was, ok := before.(*unstructured.Unstructured)
	is, ok2 := after.(*unstructured.Unstructured)
	if !ok || !ok2 {
		return false
	}
	was, is = was.DeepCopy(), is.DeepCopy()
	was.SetResourceVersion("")
	is.SetResourceVersion("")
	return equality.Semantic.DeepEqual(was.Object, is.Object)
}

func (w *Watches) tell(kind schema.GroupVersionResource, object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if resource, ok := object.(*unstructured.Unstructured); ok {
		w.options.Changed(kind, types.NamespacedName{Namespace: resource.GetNamespace(), Name: resource.GetName()})
	}
}
