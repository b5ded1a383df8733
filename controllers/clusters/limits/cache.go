package limits

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// cacheCounter counts the objects that one informer keeps.
type cacheCounter struct {
	limiter *Limiter
	// transform is applied to the objects before they are counted.
	transform toolscache.TransformFunc
	// objects and bytes are guarded by the lock of the limiter.
	objects, bytes int64
}

// countedInformer ends the count of its objects when it stops.
type countedInformer struct {
	toolscache.SharedIndexInformer
	counter *cacheCounter
}

// Run implements toolscache.SharedIndexInformer.
func (i countedInformer) Run(stop <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext implements toolscache.SharedIndexInformer.
func (i countedInformer) RunWithContext(ctx context.Context) {
	defer i.counter.limiter.removeCounter(i.counter)
	i.SharedIndexInformer.RunWithContext(ctx)
}

// NewInformerFunc returns the function that makes the informers of the target's
// caches. It is NewInformer of the options of a cache. The informers check the
// limits. They list in pages, and count the objects that they list, watch and keep,
// in the form that transform gives the objects.
func (g *Limiter) NewInformerFunc(transform toolscache.TransformFunc) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		source := toolscache.ToListerWatcherWithContext(lw)
		t := &cacheCounter{limiter: g, transform: transform}
		informer := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return t.list(ctx, source, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return t.watch(ctx, source, o)
			},
		}, example, resync, indexers)
		_, _ = informer.AddEventHandler(t) // it only fails on a stopped informer
		g.mu.Lock()
		defer g.mu.Unlock()
		g.counters.Insert(t)
		return countedInformer{informer, t}
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
		before := size
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
		if err := t.checkPage(ctx, int64(len(all)), size, int64(len(items)), size-before); err != nil {
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

// checkPage checks the limits after a page of a list, and delays the next page if there
// are more objects than expected. objects and size are those of all pages so far.
func (t *cacheCounter) checkPage(ctx context.Context, objects, size, pageObjects, pageBytes int64) error {
	unexpected, err := t.limiter.checkCache(t, objects, size)
	if err != nil || !unexpected {
		return err
	}
	return t.limiter.awaitUnexpected(ctx, pageObjects, pageBytes)
}

// unexpectedInitialEvents ends a watch with too many initial events. The informer then
// lists the objects instead. A list can be delayed between two pages. A slow watch is
// closed by the API server.
var unexpectedInitialEvents = watch.Event{Type: watch.Error, Object: &metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
	Message: "the target has more objects than expected; they are listed slowly",
}}

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
			unexpected, err := t.limiter.checkCache(t, objects, size)
			if unexpected {
				e = unexpectedInitialEvents
			}
			return e, err == nil
		}
		if !t.limiter.events.Allow() {
			_ = t.limiter.Exceed("watch events per second: %d", t.limiter.limits.EventsPerSecond)
			return e, false
		}
		if t.limiter.isUnexpected(t.limiter.count(nil, 0, 0)) {
			return e, t.limiter.awaitUnexpected(ctx, 1, memorySize(e.Object)) == nil
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
	g.counters = sets.New[*cacheCounter]()
	g.objects, g.cacheBytes = 0, 0
	g.mu.Unlock()
	g.budget.setCached(g, 0)
}

// removeCounter removes the counter of an informer that has stopped.
func (g *Limiter) removeCounter(t *cacheCounter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counters.Has(t) {
		g.counters.Delete(t)
		g.objects, g.cacheBytes = g.objects-t.objects, g.cacheBytes-t.bytes
	}
}

// count returns the number and the size of the objects of all informers. objects and size
// replace those of one informer.
func (g *Limiter) count(replaced *cacheCounter, objects, size int64) (int64, int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	objects, size = objects+g.objects, size+g.cacheBytes
	if g.counters.Has(replaced) {
		objects, size = objects-replaced.objects, size-replaced.bytes
	}
	return objects, size
}

// checkCache compares the objects of all informers with the limits, and tells whether
// there are more than are expected. objects and size replace those of one informer.
func (g *Limiter) checkCache(replaced *cacheCounter, objects, size int64) (unexpected bool, _ error) {
	objects, size = g.count(replaced, objects, size)
	g.budget.setCached(g, size)
	switch {
	case objects > int64(g.limits.Objects):
		return false, g.Exceed("objects of this hub: %d", g.limits.Objects)
	case size > g.limits.CacheBytes:
		return false, g.Exceed("bytes of the objects of this hub: %d", g.limits.CacheBytes)
	}
	return g.isUnexpected(objects, size), nil
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
	if t.limiter.addObjects(t, objects, size) && (objects > 0 || size > 0) {
		_, _ = t.limiter.checkCache(nil, 0, 0) // the limiter handles an exceeded limit
	}
}

// addObjects changes the number and the size of the objects of an informer. It returns
// false for an informer whose cache was dropped.
func (g *Limiter) addObjects(t *cacheCounter, objects, size int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.counters.Has(t) {
		return false
	}
	t.objects, t.bytes = t.objects+objects, t.bytes+size
	g.objects, g.cacheBytes = g.objects+objects, g.cacheBytes+size
	return true
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
