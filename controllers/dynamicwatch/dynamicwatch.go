// Package dynamicwatch watches kinds that are unknown at compile time. A watch begins
// with the first watcher of its kind, and ends with the last.
package dynamicwatch

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

// WatchError is the error of a kind that cannot be watched: the verb, and the answer
// of the API server.
type WatchError struct {
	Verb string
	Err  error
}

func (r *WatchError) Error() string { return r.Verb + ": " + r.Err.Error() }

// Unwrap returns the answer of the API server.
func (r *WatchError) Unwrap() error { return r.Err }

// Options are the options of a set of watches.
type Options struct {
	// Client of the hub.
	Client dynamic.Interface
	// Trim returns the needed fields of an object. Only these are kept in memory, and
	// only their changes are reported.
	Trim func(*unstructured.Unstructured) *unstructured.Unstructured
	// Changed is called for an object that was created, changed or deleted.
	Changed func(kind schema.GroupVersionResource, object types.NamespacedName)
	// Stopped is called when a watch ended by itself, because its kind is no longer
	// served, or may no longer be read.
	Stopped func(kind schema.GroupVersionResource)
}

// Watches is a set of running watches. It is kept in memory only: each reconcile of a
// watcher calls Watch again.
type Watches struct {
	ctx     context.Context //nolint:containedctx // of the watches
	options Options

	mu       sync.Mutex
	running  map[schema.GroupVersionResource]context.CancelFunc
	watchers map[types.NamespacedName]schema.GroupVersionResource
}

// New returns a set of watches, which end with ctx.
func New(ctx context.Context, o Options) *Watches {
	return &Watches{
		ctx: ctx, options: o,
		running:  map[schema.GroupVersionResource]context.CancelFunc{},
		watchers: map[types.NamespacedName]schema.GroupVersionResource{},
	}
}

// Watch watches a kind for a watcher, until the watcher watches another kind or is
// released. It fails with a WatchError if the kind cannot be watched. Calls to the
// hub are made without the lock, so that a slow response for one kind delays no
// other.
func (w *Watches) Watch(ctx context.Context, watcher types.NamespacedName, kind schema.GroupVersionResource) error {
	w.mu.Lock()
	if before, ok := w.watchers[watcher]; ok && before != kind {
		w.release(watcher)
	}
	w.watchers[watcher] = kind
	running := w.running[kind] != nil
	w.mu.Unlock()
	if running {
		return nil
	}
	// An informer only logs a denied watch, so a request is made first.
	if err := w.probe(ctx, kind); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// Another call may have started the watch, or ended the need for it.
	if w.running[kind] == nil && w.isNeeded(kind) {
		w.start(kind)
	}
	return nil
}

// Release ends the watch of a watcher's kind, unless another watcher has the same
// kind.
func (w *Watches) Release(watcher types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release(watcher)
}

func (w *Watches) release(watcher types.NamespacedName) {
	kind, ok := w.watchers[watcher]
	if !ok {
		return
	}
	delete(w.watchers, watcher)
	if !w.isNeeded(kind) {
		w.stop(kind)
	}
}

// isNeeded tells whether a kind has a watcher. The caller holds the lock.
func (w *Watches) isNeeded(kind schema.GroupVersionResource) bool {
	for _, other := range w.watchers {
		if other == kind {
			return true
		}
	}
	return false
}

// Running returns the kinds that are watched.
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
		return &WatchError{Verb: "list", Err: err}
	}
	events, err := w.options.Client.Resource(kind).Watch(ctx, metav1.ListOptions{TimeoutSeconds: ptr.To[int64](1)})
	if err != nil {
		return &WatchError{Verb: "watch", Err: err}
	}
	events.Stop()
	return nil
}

func (w *Watches) start(kind schema.GroupVersionResource) {
	ctx, cancel := context.WithCancel(w.ctx)
	informer := dynamicinformer.NewFilteredDynamicInformer(w.options.Client, kind, metav1.NamespaceAll, 0, nil, nil).Informer()
	// These calls cannot fail on an informer that has not started.
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
		stopped := ctx.Err() == nil && w.stop(kind)
		w.mu.Unlock()
		if stopped {
			w.options.Stopped(kind)
		}
	})
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { w.notify(kind, object) },
		UpdateFunc: func(before, after any) {
			if !equalTrimmed(before, after) {
				w.notify(kind, after)
			}
		},
		DeleteFunc: func(object any) { w.notify(kind, object) },
	})
	w.running[kind] = cancel
	go informer.RunWithContext(ctx)
}

// trim also keeps the resource version, from which a watch continues.
func (w *Watches) trim(resource *unstructured.Unstructured) *unstructured.Unstructured {
	trimmed := w.options.Trim(resource)
	trimmed.SetResourceVersion(resource.GetResourceVersion())
	return trimmed
}

func equalTrimmed(before, after any) bool {
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

func (w *Watches) notify(kind schema.GroupVersionResource, object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if resource, ok := object.(*unstructured.Unstructured); ok {
		w.options.Changed(kind, types.NamespacedName{Namespace: resource.GetNamespace(), Name: resource.GetName()})
	}
}
