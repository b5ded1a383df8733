// Package targetqueue gives each target a work queue of its own.
package targetqueue

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Queues gives each published target a queue and workers of its own, so that a target
// that hangs does not delay other targets. The queue exists while a resource is on the
// target. All targets that are not published share one queue, because any user may name
// targets that do not exist.
type Queues struct {
	// Workers is the number of workers of each queue.
	Workers int
	// RateLimiter returns the backoff of a new queue.
	RateLimiter func() workqueue.TypedRateLimiter[Request]
	// NewReconciler returns the reconciler for the resources on a target.
	NewReconciler func(target types.NamespacedName) reconcile.Reconciler
	// Published tells whether a target is published.
	Published func(target types.NamespacedName) bool

	mu          sync.Mutex
	ctx         context.Context //nolint:containedctx // ends all queues; nil before Start
	unpublished *workerQueue    // nil before the first resource on an unpublished target
	byTarget    map[types.NamespacedName]*tracked
}

// Request requests the reconcile of one resource on one of its targets.
type Request struct {
	Target   types.NamespacedName
	Resource string // in the target's namespace
}

// tracked has the resources on a target, and the queue of the target.
type tracked struct {
	resources sets.Set[string]
	// queue is nil if the target is not published, or has no request yet.
	queue *workerQueue
	// ending means that the queue accepts no requests, and that its workers have not
	// finished. When they have, all resources are enqueued.
	ending bool
}

// workerQueue is a queue with its workers.
type workerQueue struct {
	workqueue.TypedRateLimitingInterface[Request]
	stop context.CancelFunc
	// stopped is closed when all workers have finished.
	stopped chan struct{}
}

// Start opens the queues, and enqueues every tracked resource. The end of ctx closes the
// queues.
func (q *Queues) Start(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ctx = ctx
	for target, on := range q.byTarget {
		q.enqueueTracked(target, on)
	}
}

// Track records that a resource is on a target. Only tracked resources are enqueued.
func (q *Queues) Track(target types.NamespacedName, resource string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byTarget == nil {
		q.byTarget = map[types.NamespacedName]*tracked{}
	}
	if q.byTarget[target] == nil {
		q.byTarget[target] = &tracked{resources: sets.New[string]()}
	}
	q.byTarget[target].resources.Insert(resource)
}

// Untrack records that a resource is not on a target any more. The queue of the target
// ends with the last resource.
func (q *Queues) Untrack(target types.NamespacedName, resource string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.byTarget[target]
	if left == nil {
		return
	}
	if left.resources.Delete(resource); left.resources.Len() > 0 {
		return
	}
	switch {
	case left.queue == nil:
		delete(q.byTarget, target)
	case !left.ending:
		q.closeQueue(target, left)
	}
}

// Enqueue enqueues a resource for a target, and tells whether the resource is on that
// target. fresh ends the backoff of earlier failures.
func (q *Queues) Enqueue(target types.NamespacedName, resource string, fresh bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	on := q.byTarget[target]
	if on == nil || !on.resources.Has(resource) {
		return false
	}
	if queue := q.queueFor(target, on); queue != nil {
		queue.add(Request{target, resource}, fresh)
	}
	return true
}

// EnqueueAll enqueues every resource on a target, and ends their backoff.
func (q *Queues) EnqueueAll(target types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enqueueTracked(target, q.byTarget[target])
}

func (q *Queues) enqueueTracked(target types.NamespacedName, on *tracked) {
	if on == nil {
		return
	}
	queue := q.queueFor(target, on)
	if queue == nil {
		return
	}
	for resource := range on.resources {
		queue.add(Request{target, resource}, true)
	}
}

func (w *workerQueue) add(r Request, fresh bool) {
	if fresh {
		w.Forget(r)
	}
	w.Add(r)
}

// queueFor returns the queue for the requests of a target, or nil while its last queue
// ends. The caller holds the lock.
func (q *Queues) queueFor(target types.NamespacedName, on *tracked) *workerQueue {
	if q.ctx == nil || q.ctx.Err() != nil || on.ending {
		return nil
	}
	log := logf.Log.WithName("propagation")
	switch published := q.Published(target); {
	case !published && on.queue != nil:
		q.closeQueue(target, on)
		return nil
	case !published:
		if q.unpublished == nil {
			q.unpublished = q.openQueue(log, q.reconcileUnpublished)
		}
		return q.unpublished
	case on.queue == nil:
		reconciler := q.NewReconciler(target)
		on.queue = q.openQueue(log, func(ctx context.Context, r Request) (reconcile.Result, error) {
			return reconciler.Reconcile(ctx, r.reconcileRequest())
		})
	}
	return on.queue
}

func (r Request) reconcileRequest() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Target.Namespace, Name: r.Resource}}
}

// reconcileUnpublished reconciles a resource on a target that is not published. If the
// target was published meanwhile, its own queue reconciles the resource again.
func (q *Queues) reconcileUnpublished(ctx context.Context, r Request) (reconcile.Result, error) {
	if q.Published(r.Target) {
		q.Enqueue(r.Target, r.Resource, true)
		return reconcile.Result{}, nil
	}
	result, err := q.NewReconciler(r.Target).Reconcile(ctx, r.reconcileRequest())
	if q.Published(r.Target) {
		q.Enqueue(r.Target, r.Resource, true)
		return reconcile.Result{}, nil
	}
	return result, err
}

// closeQueue closes the queue of a target. Requests wait until its workers have finished,
// so that no two workers have the same resource. The caller holds the lock.
func (q *Queues) closeQueue(target types.NamespacedName, on *tracked) {
	on.ending = true
	on.queue.stop()
	stopped := on.queue.stopped
	go func() {
		<-stopped
		q.mu.Lock()
		defer q.mu.Unlock()
		on.queue, on.ending = nil, false
		if on.resources.Len() == 0 {
			delete(q.byTarget, target)
			return
		}
		q.enqueueTracked(target, on)
	}()
}

// openQueue starts a queue and its workers.
func (q *Queues) openQueue(log logr.Logger, run reconcile.TypedFunc[Request]) *workerQueue {
	opened := make(chan workqueue.TypedRateLimitingInterface[Request], 1)
	c, err := controller.NewTypedUnmanaged("propagation", controller.TypedOptions[Request]{
		SkipNameValidation:      ptr.To(true), // the queues of all targets have one name
		MaxConcurrentReconciles: q.Workers,
		RateLimiter:             q.RateLimiter(),
		Reconciler:              q.withoutQueueCancel(run),
		UsePriorityQueue:        ptr.To(false),
		CacheSyncTimeout:        time.Minute,
		LogConstructor: func(r *Request) logr.Logger {
			if r == nil {
				return log
			}
			return log.WithValues("target", klog.KRef(r.Target.Namespace, r.Target.Name), "resource", klog.KRef(r.Target.Namespace, r.Resource))
		},
	})
	if err != nil {
		panic(err) // the options above are complete
	}
	if err := c.Watch(source.TypedFunc[Request](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
		opened <- queue
		return nil
	})); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(q.ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := c.Start(ctx); err != nil {
			log.Error(err, "Stopped queue after an error")
		}
	}()
	return &workerQueue{TypedRateLimitingInterface: <-opened, stop: stop, stopped: stopped}
}

// withoutQueueCancel lets a reconcile finish although its queue ends. Only the end of the
// process cancels it.
func (q *Queues) withoutQueueCancel(run reconcile.TypedFunc[Request]) reconcile.TypedFunc[Request] {
	process := q.ctx
	return func(ctx context.Context, r Request) (reconcile.Result, error) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(process, cancel)()
		return run(ctx, r)
	}
}
