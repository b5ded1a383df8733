package propagationkind

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// kindCache is the cache of the manager, and another one for the objects of one kind that
// have the schedule label. The second one can be stopped.
type kindCache struct {
	cache.Cache
	own    cache.Cache
	kind   schema.GroupKind
	scheme *runtime.Scheme

	mu       sync.Mutex
	handlers []registration
}

// registration is an event handler on an informer of the manager's cache.
type registration struct {
	informer cache.Informer
	handle   toolscache.ResourceEventHandlerRegistration
}

func newKindCache(mgr ctrl.Manager, kind *kinds.Custom) (*kindCache, error) {
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}),
		DefaultTransform:     cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, err
	}
	return &kindCache{Cache: mgr.GetCache(), own: own, kind: kind.Served.GroupKind(), scheme: mgr.GetScheme()}, nil
}

// isOwn tells whether an object, or a list, is of the kind.
func (c *kindCache) isOwn(object runtime.Object) bool {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return false
	}
	if meta.IsListType(object) {
		return gvk.Group == c.kind.Group && gvk.Kind == c.kind.Kind+"List"
	}
	return gvk.GroupKind() == c.kind
}

// Get implements client.Reader.
func (c *kindCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if c.isOwn(object) {
		return c.own.Get(ctx, key, object, options...)
	}
	return c.Cache.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (c *kindCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if c.isOwn(list) {
		return c.own.List(ctx, list, options...)
	}
	return c.Cache.List(ctx, list, options...)
}

// IndexField implements client.FieldIndexer.
func (c *kindCache) IndexField(ctx context.Context, object client.Object, field string, value client.IndexerFunc) error {
	if c.isOwn(object) {
		return c.own.IndexField(ctx, object, field, value)
	}
	return c.Cache.IndexField(ctx, object, field, value)
}

// GetInformer implements cache.Informers.
func (c *kindCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	if c.isOwn(object) {
		return c.own.GetInformer(ctx, object, options...)
	}
	informer, err := c.Cache.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	return sharedInformer{Informer: informer, cache: c}, nil
}

// WaitForCacheSync implements cache.Informers.
func (c *kindCache) WaitForCacheSync(ctx context.Context) bool {
	return c.Cache.WaitForCacheSync(ctx) && c.own.WaitForCacheSync(ctx)
}

// removeHandlers removes the event handlers of the kind's controllers from the informers of
// the manager.
func (c *kindCache) removeHandlers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.handlers {
		_ = r.informer.RemoveEventHandler(r.handle) // fails if the informer has stopped
	}
	c.handlers = nil
}

// sharedInformer is an informer of the manager's cache, which outlives the kind's
// controllers.
type sharedInformer struct {
	cache.Informer
	cache *kindCache
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i sharedInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	handle, err := i.Informer.AddEventHandlerWithOptions(handler, options)
	if err == nil {
		i.cache.mu.Lock()
		defer i.cache.mu.Unlock()
		i.cache.handlers = append(i.cache.handlers, registration{i.Informer, handle})
	}
	return handle, err
}

// kindClient is the client of the manager, which reads objects of the kind from their own
// cache.
type kindClient struct {
	client.Client
	cache *kindCache
}

// Get implements client.Reader.
func (c kindClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if c.cache.isOwn(object) {
		return c.cache.own.Get(ctx, key, object, options...)
	}
	return c.Client.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (c kindClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if c.cache.isOwn(list) {
		return c.cache.own.List(ctx, list, options...)
	}
	return c.Client.List(ctx, list, options...)
}
