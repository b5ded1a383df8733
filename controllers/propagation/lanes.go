package propagation

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// lanes give every target a queue and workers of its own, so that a target that
// hangs holds up nobody but itself.
type lanes struct {
	workers int
	limiter func() workqueue.TypedRateLimiter[reconcile.Request]
	travel  func(target types.NamespacedName) reconcile.Reconciler

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // the lanes' life; nil until started
	byTarget map[types.NamespacedName]*lane
}

// lane is one target's queue.
type lane struct {
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	cancel context.CancelFunc
}

// start lets lanes be opened; they close when ctx ends.
func (l *lanes) start(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.byTarget = ctx, map[types.NamespacedName]*lane{}
}

// add queues a resource in its target's lane, which it opens when there is
// none. A resource is in the namespace of its target. fresh forgets how often it
// failed: something changed.
func (l *lanes) add(target types.NamespacedName, resource string, fresh bool) {
	queue := l.open(target)
	if queue == nil {
		return
	}
	req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: target.Namespace, Name: resource}}
	if fresh {
		queue.Forget(req)
	}
	queue.Add(req)
}

func (l *lanes) open(target types.NamespacedName) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.ctx.Err() != nil {
		return nil
	}
	if open, ok := l.byTarget[target]; ok {
		return open.queue
	}
	opened := make(chan workqueue.TypedRateLimitingInterface[reconcile.Request], 1)
	log := logf.Log.WithName("propagation").WithValues("target", target.String())
	c, err := controller.NewTypedUnmanaged("propagation", controller.TypedOptions[reconcile.Request]{
		SkipNameValidation:      ptr.To(true), // one for each target
		MaxConcurrentReconciles: l.workers,
		RateLimiter:             l.limiter(),
		Reconciler:              l.travel(target),
		UsePriorityQueue:        ptr.To(false),
		CacheSyncTimeout:        time.Minute,
		LogConstructor: func(req *reconcile.Request) logr.Logger {
			if req == nil {
				return log
			}
			return log.WithValues("resource", req.String())
		},
	})
	if err != nil {
		panic(err) // the options above are complete
	}
	if err := c.Watch(source.TypedFunc[reconcile.Request](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		opened <- queue
		return nil
	})); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(l.ctx)
	go func() {
		if err := c.Start(ctx); err != nil {
			log.Error(err, "Lane ended")
		}
	}()
	made := &lane{queue: <-opened, cancel: cancel}
	l.byTarget[target] = made
	return made.queue
}

// close ends the lane of a target that is gone and that no resource is on.
func (l *lanes) close(target types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if open, ok := l.byTarget[target]; ok {
		open.cancel()
		delete(l.byTarget, target)
	}
}
