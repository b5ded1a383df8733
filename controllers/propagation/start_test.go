package propagation

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/propagation/targetqueue"
	"github.com/portico-io/portico/controllers/reconciler"
)

// startingCache is a cache of resources that fills while the controller starts. The
// caches of other kinds are empty.
type startingCache struct {
	lister
	resources *resourceInformer
}

func (c startingCache) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if _, ok := object.(*v1alpha1.KubernetesApplicationResource); ok {
		return c.resources, nil
	}
	return &resourceInformer{synced: true}, nil
}

// resourceInformer passes resources to its handler one at a time.
type resourceInformer struct {
	cache.Informer
	mu      sync.Mutex
	handler toolscache.ResourceEventHandler
	synced  bool
}

func (i *resourceInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handler = handler
	return registration{informer: i}, nil
}

// add passes a resource of the first list; last is the last of the list.
func (i *resourceInformer) add(resource *v1alpha1.KubernetesApplicationResource, last bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handler.OnAdd(resource, true)
	i.synced = last
}

type registration struct {
	toolscache.ResourceEventHandlerRegistration
	informer *resourceInformer
}

func (r registration) HasSynced() bool {
	r.informer.mu.Lock()
	defer r.informer.mu.Unlock()
	return r.informer.synced
}

// TestStartDuringMove: a leader starts while application shop moves from target old to
// target new, where web is ready and db is not. Nothing of the application is deleted on
// target old before the leader knows all members, and before db is ready.
func TestStartDuringMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, db := moving("web", "old", "new", "new"), moving("db", "old", "new", "old")
		c := controllerOn(t, web.DeepCopy(), db.DeepCopy())
		informer := &resourceInformer{}
		c.enqueuer.Cache = startingCache{lister: lister{reader: c.hub}, resources: informer}
		var mu sync.Mutex
		left := map[string]error{} // of the step that may let a resource leave target old
		c.enqueuer.Queues = &targetqueue.Queues{
			Workers:     1,
			RateLimiter: workqueue.DefaultTypedItemBasedRateLimiter[targetqueue.Request],
			Published:   func(types.NamespacedName) bool { return true },
			NewReconciler: func(target types.NamespacedName) reconcile.Reconciler {
				return reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
					s := &scope.Scope{Target: target, Resource: &v1alpha1.KubernetesApplicationResource{}}
					if err := c.hub.Get(ctx, r.NamespacedName, s.Resource); err != nil {
						t.Error(err)
					}
					if target.Name == "old" {
						mu.Lock()
						defer mu.Unlock()
						left[r.Name] = c.remover.waitForApplication(ctx, s)
					}
					return reconcile.Result{}, nil
				})
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go func() {
			if err := c.Start(ctx); err != nil {
				t.Error(err)
			}
		}()
		expect := func(when string, want map[string]error) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for _, name := range []string{"web", "db"} {
				if err, reconciled := left[name]; reconciled != (want != nil) || reconciled && !errors.Is(err, want[name]) {
					t.Errorf("%s, %s is reconciled on target old: %t, which returns %v, want %v", when, name, reconciled, err, want[name])
				}
			}
		}

		synctest.Wait()
		informer.add(web, false)
		expect("with one of two members known", nil)
		informer.add(db, true)
		wait := reconciler.RequeueAfter(scope.PollInterval)
		expect("with one of two members ready", map[string]error{"web": wait, "db": wait})

		ready := moving("db", "old", "new", "new")
		stored := &v1alpha1.KubernetesApplicationResource{}
		if err := c.hub.Get(ctx, client.ObjectKeyFromObject(db), stored); err != nil {
			t.Fatal(err)
		}
		stored.Status = ready.Status
		if err := c.hub.Update(ctx, stored); err != nil {
			t.Fatal(err)
		}
		informer.handler.OnUpdate(db, ready)
		expect("with all members ready", map[string]error{"web": nil, "db": nil})
	})
}
