package limits

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// cacheCounter counts the objects that one informer keeps.
type cacheCounter struct {
	limiter *Limiter
	// transform is applied to the objects before they are counted.
	transform toolscache.TransformFunc
	informer  toolscache.SharedIndexInformer
	objects   atomic.Int64
	bytes     atomic.Int64
}

// NewInformerFunc returns the function that makes the informers of the target's
// caches. It is NewInformer of the options of a cache. The informers check the
// limits. They list in pages, and count the objects that they list, watch and keep,
// in the form that transform gives the objects.
func (g *Limiter) NewInformerFunc(transform toolscache.TransformFunc) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		source := toolscache.ToListerWatcherWithContext(lw)
		t := &cacheCounter{limiter: g, transform: transform}
		t.informer = toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return t.list(ctx, source, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return t.watch(ctx, source, o)
			},
		}, example, resync, indexers)
		_, _ = t.informer.AddEventHandler(t) // it only fails on a stopped informer
		g.mu.Lock()
		defer g.mu.Unlock()
		g.counters[t] = struct{}{}
		return t.informer
	}
}

// errPageTooLarge ends a page that is requested again with fewer objects.
var errPageTooLarge = errors.New("a page of objects is too large")

// list lists page by page, and transforms the objects. It returns all pages as one,
// because a reflector that pages by itself stops paging when a page has expired.
func (t *cacheCounter) list(ctx context.Context, source toolscache.ListerWatcherWithContext, o metav1.ListOptions) (runtime.Object, error) {
	// The most recent version, because an older one is not paged.
	o.ResourceVersion, o.ResourceVersionMatch = "", ""
	o.Limit, o.Continue = pageSize, ""
	var first runtime.Object
	var all []runtime.Object
	var size int64
	ctx, endTurn := withTurn(ctx)
	defer endTurn()
	for {
		page, err := source.ListWithContext(context.WithValue(ctx, tooLargeAllowed{}, o.Limit > smallPage), o)
		if errors.Is(err, errPageTooLarge) {
			o.Limit = smallPage
			continue
		}
		if err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(page)
		if err != nil {
			return nil, fmt.Errorf("reading a page of objects: %w", err)
		}
		if int64(len(items)) > o.Limit {
			return nil, t.limiter.Exceed("objects of one page: %d", o.Limit)
		}
		for _, item := range items {
			transformed, err := t.transform(item)
			if err != nil {
				return nil, err
			}
			item, _ = transformed.(runtime.Object)
			size += memorySize(item)
			all = append(all, item)
		}
		endTurn()
		if err := t.limiter.checkCache(t, int64(len(all)), size); err != nil {
			return nil, err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("reading a page of objects: %w", err)
		}
		if first == nil {
			first = page
		}
		o.Continue = list.GetContinue()
		if o.Continue != "" {
			continue
		}
		if len(all) == 0 {
			return page, nil
		}
		if whole, err := meta.ListAccessor(first); err == nil {
			whole.SetContinue("")
			whole.SetRemainingItemCount(nil)
		}
		return first, meta.SetList(first, all)
	}
}

// watch counts events. The initial events of a watch, which replace a list, count as
// objects.
func (t *cacheCounter) watch(ctx context.Context, source toolscache.ListerWatcherWithContext, o metav1.ListOptions) (watch.Interface, error) {
	events, err := source.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	var objects, size int64
	return filterWatch(events, func(e watch.Event) (watch.Event, bool) {
		if transformed, err := t.transform(e.Object); err == nil && e.Type != watch.Error {
			e.Object, _ = transformed.(runtime.Object)
		}
		switch {
		case e.Type == watch.Bookmark:
			initial = initial && !endsInitialEvents(e.Object)
		case initial:
			objects++
			size += memorySize(e.Object)
			return e, t.limiter.checkCache(t, objects, size) == nil
		}
		if !t.limiter.events.Allow() {
			_ = t.limiter.Exceed("watch events per second: %d", t.limiter.limits.EventsPerSecond)
			return e, false
		}
		return e, true
	}), nil
}

// filteredWatch passes every event of a watch to a function. Unlike watch.Filter it
// also ends when it is stopped while no event is received.
type filteredWatch struct {
	watch.Interface
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

func filterWatch(source watch.Interface, pass func(watch.Event) (watch.Event, bool)) watch.Interface {
	f := &filteredWatch{Interface: source, events: make(chan watch.Event), done: make(chan struct{})}
	go func() {
		defer close(f.events)
		for e := range source.ResultChan() {
			e, ok := pass(e)
			if !ok {
				continue
			}
			select {
			case f.events <- e:
			case <-f.done:
				return
			}
		}
	}()
	return f
}

// ResultChan implements watch.Interface.
func (f *filteredWatch) ResultChan() <-chan watch.Event { return f.events }

// Stop implements watch.Interface.
func (f *filteredWatch) Stop() {
	f.once.Do(func() { close(f.done) })
	f.Interface.Stop()
}

func endsInitialEvents(object runtime.Object) bool {
	o, err := meta.Accessor(object)
	return err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// ResetCounters removes the counters of caches that are dropped.
func (g *Limiter) ResetCounters() {
	g.mu.Lock()
	clear(g.counters)
	g.mu.Unlock()
	g.budget.setCached(g, 0)
}

// checkCache compares the objects of all informers with the limits. objects and size
// replace those of one informer.
func (g *Limiter) checkCache(replaced *cacheCounter, objects, size int64) error {
	g.mu.Lock()
	for t := range g.counters {
		if t == replaced {
			continue
		}
		if t.informer.IsStopped() {
			delete(g.counters, t)
			continue
		}
		objects, size = objects+t.objects.Load(), size+t.bytes.Load()
	}
	g.mu.Unlock()
	g.budget.setCached(g, size)
	switch {
	case objects > int64(g.limits.Objects):
		return g.Exceed("objects of this hub: %d", g.limits.Objects)
	case size > g.limits.CacheBytes:
		return g.Exceed("bytes of the objects of this hub: %d", g.limits.CacheBytes)
	}
	return nil
}

// OnAdd implements toolscache.ResourceEventHandler.
func (t *cacheCounter) OnAdd(object any, _ bool) { t.add(1, memorySize(object)) }

// OnUpdate implements toolscache.ResourceEventHandler.
func (t *cacheCounter) OnUpdate(before, object any) { t.add(0, memorySize(object)-memorySize(before)) }

// OnDelete implements toolscache.ResourceEventHandler.
func (t *cacheCounter) OnDelete(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	t.add(-1, -memorySize(object))
}

func (t *cacheCounter) add(objects, size int64) {
	t.objects.Add(objects)
	t.bytes.Add(size)
	if (objects > 0 || size > 0) && !t.informer.IsStopped() {
		_ = t.limiter.checkCache(nil, 0, 0) // the limiter handles an exceeded limit
	}
}

// memorySize estimates the memory that a cached object takes.
func memorySize(object any) int64 {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		return valueSize(o.Object)
	case *metav1.PartialObjectMetadata:
		return int64(len(o.Name)) + 10*valueOverhead
	}
	return valueOverhead
}

func valueSize(value any) int64 {
	size := int64(valueOverhead)
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			size += int64(len(key)) + valueSize(inner)
		}
	case []any:
		for _, inner := range v {
			size += valueSize(inner)
		}
	case string:
		size += int64(len(v))
	}
	return size
}
