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

// namespaceCache has the caches of one namespace of the hub. It ends when the target
// becomes unreachable. The next one starts as soon as the target is reachable,
// without the backoff of reflectors.
type namespaceCache struct {
	namespace string
	ctx       context.Context //nolint:containedctx // the caches' life
	cache     cache.Cache
	cancel    context.CancelFunc
	kinds     map[schema.GroupVersionKind]*kindWatch
}

// kindWatch is the watch of one kind of objects.
type kindWatch struct {
	// Informer is nil until all objects of the kind have the label that the watch
	// selects.
	cache.Informer
	// refusal is the last answer of the target that denied a list or a watch.
	refusal error
	// stale is set when the target denied the watch after it had allowed it.
	stale bool
}

// currentMapper returns the target's mapper; nil while the target is unreachable.
func (c *Connection) currentMapper() meta.RESTMapper {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.IsReachable() {
		return nil
	}
	return c.mapper
}

// informerFor is TargetConnection.Informer for the objects of one namespace.
func (c *Connection) informerFor(namespace string, gvk schema.GroupVersionKind) (Reader, bool, error) {
	mapper := c.currentMapper()
	if mapper == nil {
		return nil, false, nil
	}
	// Calls to the target come before the lock: a target that hangs must not delay
	// callers of State.
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, false, err
	}
	c.missingKinds.kindFound(gvk)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.IsReachable() || len(targetsIn(c.targets, namespace)) == 0 {
		return nil, false, nil
	}
	w, err := c.cacheFor(namespace)
	if err != nil {
		return nil, false, err
	}
	watched, started := w.kinds[gvk]
	if !started && !c.labelled[gvk] {
		w.kinds[gvk] = &kindWatch{}
		go c.labelAndWatch(w, gvk, mapping)
		return nil, false, nil
	}
	if !started {
		if watched, err = c.startInformer(w, gvk); err != nil {
			return nil, false, err
		}
	}
	synced := watched.Informer != nil && watched.HasSynced()
	if watched.refusal != nil && (!synced || watched.stale) {
		return nil, false, watched.refusal
	}
	return unpackingReader{w.cache}, synced, nil
}

// startInformer begins to watch a kind.
func (c *Connection) startInformer(w *namespaceCache, gvk schema.GroupVersionKind) (*kindWatch, error) {
	informer, err := w.cache.GetInformer(c.ctx, objectOfKind(gvk), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	if isCopyKind(gvk) {
		if err := w.cache.IndexField(c.ctx, objectOfKind(gvk), resourceIndex, indexResource); err != nil {
			return nil, fmt.Errorf("indexing %s: %w", gvk.Kind, err)
		}
	}
	if _, err := informer.AddEventHandler(eventHandler(w.namespace, c.notifyObjectChanged)); err != nil {
		return nil, fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	watched := &kindWatch{Informer: informer}
	w.kinds[gvk] = watched
	go c.notifyWhenSynced(w, informer)
	return watched, nil
}

func objectOfKind(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// notifyWhenSynced reports a change to the namespace's targets when a kind is listed.
func (c *Connection) notifyWhenSynced(w *namespaceCache, informer cache.Informer) {
	stopped := func() bool { return informer.IsStopped() || informer.HasSynced() }
	if toolscache.WaitForCacheSync(w.ctx.Done(), stopped) && !informer.IsStopped() {
		c.notifyTargetsIn(w.namespace)
	}
}

// watchFailed handles the error of a watch of a namespace's objects.
func (c *Connection) watchFailed(ctx context.Context, namespace string, reflector *toolscache.Reflector, err error) {
	switch {
	case apierrors.IsForbidden(err):
		c.watchForbidden(ctx, namespace, reflector.TypeDescription(), err)
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
	default:
		c.RequestProbe()
	}
}

// watchForbidden records that the target denies the watch of a kind. A cache that is
// not updated any more is not used. It is dropped after a delay, and filled again.
func (c *Connection) watchForbidden(ctx context.Context, namespace, description string, err error) {
	c.mu.Lock()
	w, changed := c.caches[namespace], false
	if w == nil || w.ctx.Err() != nil || ctx.Err() != nil {
		c.mu.Unlock()
		return
	}
	for gvk, watched := range w.kinds {
		if gvk.String() != description {
			continue
		}
		changed = watched.refusal == nil || watched.refusal.Error() != err.Error()
		watched.refusal = err
		if watched.Informer != nil && watched.HasSynced() && !watched.stale {
			watched.stale, changed = true, true
			time.AfterFunc(wait.Jitter(restartWatchDelay, 0.5), func() { c.restartWatch(w, gvk) })
		}
	}
	c.mu.Unlock()
	if changed {
		c.notifyTargetsIn(namespace)
	}
}

// restartWatchDelay is the delay before a denied watch is started again.
const restartWatchDelay = 20 * time.Second

func (c *Connection) restartWatch(w *namespaceCache, gvk schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.ctx.Err() != nil {
		return
	}
	before := w.kinds[gvk]
	delete(w.kinds, gvk)
	_ = w.cache.RemoveInformer(c.ctx, objectOfKind(gvk)) // fails for objects without a kind only
	if retried, err := c.startInformer(w, gvk); err == nil && before != nil {
		retried.refusal = before.refusal
	}
}

func (c *Connection) cacheFor(namespace string) (*namespaceCache, error) {
	if w := c.caches[namespace]; w != nil {
		return w, nil
	}
	made, err := cache.New(c.config, cache.Options{
		HTTPClient:                  c.http,
		Scheme:                      runtime.NewScheme(),
		Mapper:                      c.mapper,
		DefaultLabelSelector:        labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: c.options.HubID, v1alpha1.HubNamespaceLabel: namespace}),
		DefaultTransform:            pack,
		NewInformer:                 c.limiter.NewInformerFunc(pack),
		ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler: func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			c.watchFailed(ctx, namespace, reflector, err)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the caches of %s: %w", c.host, err)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	go func() { _ = made.Start(ctx) }() // it returns when ctx ends, and has no other error
	w := &namespaceCache{namespace: namespace, ctx: ctx, cache: made, cancel: cancel, kinds: map[schema.GroupVersionKind]*kindWatch{}}
	c.caches[namespace] = w
	return w, nil
}

func (c *Connection) stopCaches() {
	c.missingKinds.clear()
	for namespace, w := range c.caches {
		w.cancel()
		delete(c.caches, namespace)
	}
	c.limiter.ResetCounters()
}

// eventHandler calls changed with the resource that an object on the target belongs to.
// It reports the resources of one namespace.
func eventHandler(namespace string, changed func(resource types.NamespacedName)) toolscache.ResourceEventHandler {
	notify := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		o, ok := object.(metav1.Object)
		if !ok {
			return
		}
		// The annotation names the owner. The label is only for the watch: any user of
		// the target may have written it.
		if resource := ResourceOf(o); resource.Namespace == namespace {
			changed(resource)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial { // notifyWhenSynced reports the first list
				notify(object)
			}
		},
		UpdateFunc: func(before, object any) {
			was, ok := before.(metav1.Object)
			is, ok2 := object.(metav1.Object)
			if ok && ok2 && was.GetResourceVersion() == is.GetResourceVersion() {
				return // the object was listed again, because the watch ended
			}
			if ok && ok2 && ResourceOf(was) != ResourceOf(is) {
				notify(before) // the object has a new owner
			}
			notify(object)
		},
		DeleteFunc: notify,
	}
}

// ResourceOf returns the KubernetesApplicationResource that an object on a target
// belongs to.
func ResourceOf(object metav1.Object) types.NamespacedName {
	annotations := object.GetAnnotations()
	return types.NamespacedName{
		Namespace: annotations[v1alpha1.ResourceNamespaceAnnotation],
		Name:      annotations[v1alpha1.ResourceNameAnnotation],
	}
}
