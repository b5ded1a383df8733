package targetqueue

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// timeout is the limit on the wait for events that follow at once.
const timeout = time.Minute

// queuesOf returns queues whose reconciles call run, and the published targets.
func queuesOf(run func(ctx context.Context, target types.NamespacedName, resource string)) (*Queues, *sync.Map) {
	published := &sync.Map{}
	return &Queues{
		Workers: 2,
		RateLimiter: func() workqueue.TypedRateLimiter[Request] {
			return workqueue.NewTypedItemExponentialFailureRateLimiter[Request](time.Millisecond, time.Second)
		},
		NewReconciler: func(target types.NamespacedName) reconcile.Reconciler {
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				run(ctx, target, req.Name)
				return reconcile.Result{}, nil
			})
		},
		Published: func(target types.NamespacedName) bool {
			_, ok := published.Load(target)
			return ok
		},
	}, published
}

func (q *Queues) queues() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, on := range q.byTarget {
		if on.queue != nil {
			n++
		}
	}
	if q.unpublished != nil {
		n++
	}
	return n
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came to this: " + what)
		}
	}
}

// TestQueues sends more resources to a target that hangs than it has workers, and one
// resource to another target.
func TestQueues(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	hangs := types.NamespacedName{Namespace: "team-a", Name: "hangs"}
	answers := types.NamespacedName{Namespace: "team-a", Name: "answers"}
	arrived := make(chan string, 10)
	l, published := queuesOf(func(ctx context.Context, target types.NamespacedName, resource string) {
		if target == hangs {
			<-ctx.Done()
			return
		}
		arrived <- target.Name + " " + resource
	})
	published.Store(hangs, true)
	published.Store(answers, true)
	add := func(target types.NamespacedName, resource string) {
		l.Track(target, resource)
		l.Enqueue(target, resource, true)
	}
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-arrived:
			if got != want {
				t.Errorf("arrived: %s, want %s", got, want)
			}
		case <-time.After(timeout):
			t.Errorf("%s never arrived", want)
		}
	}

	l.Start(ctx)
	for _, name := range []string{"a", "b", "c", "d"} {
		add(hangs, name)
	}
	if l.Enqueue(answers, "unplaced", false) || l.queues() != 1 {
		t.Error("a resource without a target has a queue")
	}
	add(answers, "first")
	expect("answers first")
	l.Untrack(answers, "first")
	l.Untrack(answers, "first")
	eventually(t, "the queue ends with the last resource", func() bool { return l.queues() == 1 })
	add(answers, "second")
	expect("answers second")
	stop()
	add(types.NamespacedName{Name: "late"}, "a")
	if l.byTarget[types.NamespacedName{Name: "late"}].queue != nil {
		t.Error("a queue was opened after the end")
	}
}

// TestUnpublishedTargets enqueues 5,000 targets that do not exist.
func TestUnpublishedTargets(t *testing.T) {
	const many = 5000
	var seen sync.Map
	l, published := queuesOf(func(_ context.Context, target types.NamespacedName, _ string) { seen.Store(target, true) })
	l.Start(t.Context())
	invented := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "team-a", Name: "invented-" + strconv.Itoa(i)}
	}
	add := func(i int) {
		l.Track(invented(i), "web")
		l.Enqueue(invented(i), "web", true)
	}
	saw := func(target types.NamespacedName) func() bool {
		return func() bool { _, ok := seen.Load(target); return ok }
	}
	add(0)
	eventually(t, "a resource whose target is not published is reconciled", saw(invented(0)))
	before := runtime.NumGoroutine()
	for i := range many {
		add(i)
	}
	for i := range many {
		eventually(t, "each is reconciled", saw(invented(i)))
	}
	if now := runtime.NumGoroutine(); now > before+10 || l.queues() != 1 {
		t.Errorf("%d resources with invented targets made %d goroutines of %d, and %d queues", many, now, before, l.queues())
	}

	published.Store(invented(7), true)
	l.EnqueueAll(invented(7))
	if l.queues() != 2 {
		t.Error("a target that is published has no queue")
	}
	for i := range many {
		l.Untrack(invented(i), "web")
	}
	eventually(t, "all queues but the shared one end", func() bool { return l.queues() == 1 })
	eventually(t, "nothing is remembered", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.byTarget) == 0 })
}

// TestQueueEnds ends queues while requests arrive. No request is lost, none runs twice
// at a time, and a running reconcile is not cancelled.
func TestQueueEnds(t *testing.T) {
	const rounds, resources = 200, 20
	target := types.NamespacedName{Namespace: "team-a", Name: "flaps"}
	var mu sync.Mutex
	running, done, cut := map[string]int{}, map[string]int{}, false
	twice := false
	l, published := queuesOf(func(ctx context.Context, _ types.NamespacedName, resource string) {
		mu.Lock()
		running[resource]++
		twice = twice || running[resource] > 1
		mu.Unlock()
		time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		mu.Lock()
		defer mu.Unlock()
		cut = cut || ctx.Err() != nil
		running[resource]--
		done[resource]++
	})
	l.Start(t.Context())
	published.Store(target, true)
	for i := range resources {
		l.Track(target, strconv.Itoa(i))
	}
	for range rounds {
		if rand.IntN(2) == 0 {
			l.Untrack(target, "0") // and is tracked again
			l.Track(target, "0")
		}
		if rand.IntN(4) == 0 {
			for i := range resources { // all resources are removed, so that the queue ends
				l.Untrack(target, strconv.Itoa(i))
			}
			for i := range resources {
				l.Track(target, strconv.Itoa(i))
			}
		}
		mu.Lock()
		clear(done)
		mu.Unlock()
		for i := range resources {
			if !l.Enqueue(target, strconv.Itoa(i), false) {
				t.Fatalf("resource %d is on the target, and was not queued", i)
			}
		}
		eventually(t, "every resource is reconciled after it was added", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(done) == resources
		})
	}
	mu.Lock()
	defer mu.Unlock()
	if twice || cut {
		t.Errorf("a resource was reconciled twice at a time: %t; a reconcile was cut off: %t", twice, cut)
	}
}
