package clusters

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// watching is one life of the caches; it ends when the target goes away, so
// that the next begins at once when it is back, without the reflectors' backoff.
type watching struct {
	ctx    context.Context //nolint:containedctx // the caches' life
	cache  cache.Cache
	cancel context.CancelFunc
	kinds  map[schema.GroupVersionKind]*kind
}

// kind is the watch of one kind of objects.
type kind struct {
	cache.Informer
	// refusal is what the target said to the last list or watch that it refused.
	refusal error
	// stale says that it refused after it had allowed it.
	stale bool
}

// current returns the target's mapper, or nil while it does not answer.
func (c *Connection) current() meta.RESTMapper {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.Up() {
		return nil
	}
	return c.mapper
}

// Informer returns a reader of the target's objects of a kind that belong to
// this hub, and false while the first list of them is still under way. It fails
// with a NoKindMatch error when the target does not know the kind, and with the
// target's own when it does not let us watch it; that is tried again meanwhile,
// and TargetChanged tells when it succeeds.
func (c *Connection) Informer(gvk schema.GroupVersionKind) (Reader, bool, error) {
	mapper := c.current()
	if mapper == nil {
		return nil, false, nil
	}
	// What may call the target is done before the lock: a target that hangs
	// must not hold up those who only ask for its state.
	if _, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		return nil, false, err
	}
	c.unknowns.found(gvk)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.Up() {
		return nil, false, nil
	}
	w, err := c.startWatching()
	if err != nil {
		return nil, false, err
	}
	watched, started := w.kinds[gvk]
	if !started {
		if watched, err = c.watch(w, gvk); err != nil {
			return nil, false, err
		}
	}
	synced := watched.HasSynced()
	if watched.refusal != nil && (!synced || watched.stale) {
		return nil, false, watched.refusal
	}
	return unpacking{w.cache}, synced, nil
}

// watch begins to watch a kind.
func (c *Connection) watch(w *watching, gvk schema.GroupVersionKind) (*kind, error) {
	informer, err := w.cache.GetInformer(c.ctx, example(gvk), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	if carried(gvk) {
		if err := w.cache.IndexField(c.ctx, example(gvk), resourceIndex, indexResource); err != nil {
			return nil, fmt.Errorf("indexing %s: %w", gvk.Kind, err)
		}
	}
	if _, err := informer.AddEventHandler(c.handler()); err != nil {
		return nil, fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	watched := &kind{Informer: informer}
	w.kinds[gvk] = watched
	go c.tellSynced(w.ctx, informer)
	return watched, nil
}

func example(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// tellSynced makes the target's resources look again once a kind is listed.
func (c *Connection) tellSynced(ctx context.Context, informer cache.Informer) {
	stopped := func() bool { return informer.IsStopped() || informer.HasSynced() }
	if toolscache.WaitForCacheSync(ctx.Done(), stopped) && !informer.IsStopped() {
		c.listener.TargetChanged(c.target)
	}
}

// broken hears why a watch ended or could not begin.
func (c *Connection) broken(ctx context.Context, reflector *toolscache.Reflector, err error) {
	switch {
	case apierrors.IsForbidden(err):
		c.refused(ctx, reflector.TypeDescription(), err)
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
	default:
		c.Suspect()
	}
}

// refused notes that the target does not let us watch a kind. What a cache
// holds that can no longer follow is not gone by: it is dropped after a while,
// and filled anew.
func (c *Connection) refused(ctx context.Context, description string, err error) {
	c.mu.Lock()
	w, news := c.watching, false
	if w == nil || w.ctx.Err() != nil || ctx.Err() != nil {
		c.mu.Unlock()
		return
	}
	for gvk, watched := range w.kinds {
		if gvk.String() != description {
			continue
		}
		news = watched.refusal == nil || watched.refusal.Error() != err.Error()
		watched.refusal = err
		if watched.HasSynced() && !watched.stale {
			watched.stale, news = true, true
			time.AfterFunc(wait.Jitter(untilRefill, 0.5), func() { c.refill(w, gvk) })
		}
	}
	c.mu.Unlock()
	if news {
		c.listener.TargetChanged(c.target)
	}
}

// untilRefill is how long a right that was taken away is given to come back.
const untilRefill = 20 * time.Second

func (c *Connection) refill(w *watching, gvk schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.ctx.Err() != nil {
		return
	}
	before := w.kinds[gvk]
	delete(w.kinds, gvk)
	_ = w.cache.RemoveInformer(c.ctx, example(gvk)) // fails for objects without a kind only
	if again, err := c.watch(w, gvk); err == nil && before != nil {
		again.refusal = before.refusal
	}
}

func (c *Connection) startWatching() (*watching, error) {
	if c.watching != nil {
		return c.watching, nil
	}
	made, err := cache.New(c.config, cache.Options{
		HTTPClient:                  c.http,
		Scheme:                      runtime.NewScheme(),
		Mapper:                      c.mapper,
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: c.options.HubID}),
		DefaultTransform:            pack,
		ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler:    c.broken,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the caches of target %s: %w", c.target, err)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	go func() { _ = made.Start(ctx) }() // returns when ctx ends; it has no other error
	c.watching = &watching{ctx: ctx, cache: made, cancel: cancel, kinds: map[schema.GroupVersionKind]*kind{}}
	return c.watching, nil
}

func (c *Connection) stopWatching() {
	c.unknowns.clear()
	if c.watching != nil {
		c.watching.cancel()
		c.watching = nil
	}
}

// handler tells which resource an object on the target belongs to.
func (c *Connection) handler() toolscache.ResourceEventHandler {
	tell := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		o, ok := object.(metav1.Object)
		if !ok {
			return
		}
		if resource := ResourceOf(o); resource.Namespace == c.target.Namespace {
			c.listener.ObjectChanged(c.target, resource)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial { // tellSynced speaks for the first list
				tell(object)
			}
		},
		UpdateFunc: func(before, object any) {
			was, ok := before.(metav1.Object)
			is, ok2 := object.(metav1.Object)
			if ok && ok2 && ResourceOf(was) != ResourceOf(is) {
				tell(before) // it was taken over
			}
			tell(object)
		},
		DeleteFunc: tell,
	}
}

// ResourceOf reads which KubernetesApplicationResource an object on a target
// belongs to.
func ResourceOf(object metav1.Object) types.NamespacedName {
	annotations := object.GetAnnotations()
	return types.NamespacedName{
		Namespace: annotations[v1alpha1.ResourceNamespaceAnnotation],
		Name:      annotations[v1alpha1.ResourceNameAnnotation],
	}
}
