// Package policy keeps the policies in force like the Policies on the hub, and
// tells in their status what became of them.
package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
)

// +kubebuilder:rbac:groups=policy.workload.crossplane.io,resources=policies,verbs=get;list;watch

// Feed keeps the engine of one replica like the Policies on the hub. It runs on
// every replica, because every replica decides.
type Feed struct {
	engine *engine.Engine
	asker  *decisions.Asker
	cache  cache.Cache
	queue  workqueue.TypedRateLimitingInterface[string]

	mu        sync.Mutex
	listeners []func(policy string)
}

// A policy that does not compile is tried again, because what its tests need of
// a busy machine may have been missing. Both delays are safe.
const (
	tryAgain     = 2 * time.Second
	tryAgainLast = 5 * time.Minute
)

// NewFeed adds a feed to the manager. What goes wrong is counted by the asker.
func NewFeed(mgr ctrl.Manager, e *engine.Engine, asker *decisions.Asker) (*Feed, error) {
	f := &Feed{
		engine: e,
		asker:  asker,
		cache:  mgr.GetCache(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](tryAgain, tryAgainLast)),
	}
	if err := mgr.Add(f); err != nil {
		return nil, fmt.Errorf("adding the feed of policies: %w", err)
	}
	return f, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (f *Feed) NeedLeaderElection() bool { return false }

// Ready fails until every Policy that was there at the start decides, or is
// known to be broken.
func (f *Feed) Ready(*http.Request) error {
	select {
	case <-f.engine.Loaded():
		return nil
	default:
		return errors.New("policies are not loaded")
	}
}

// Listen has somebody told, from now on, of every policy whose state may have
// changed.
func (f *Feed) Listen(told func(policy string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, told)
}

func (f *Feed) tell(policy string) {
	f.mu.Lock()
	listeners := slices.Clone(f.listeners)
	f.mu.Unlock()
	for _, told := range listeners {
		told(policy)
	}
}

// Start implements manager.Runnable.
func (f *Feed) Start(ctx context.Context) error {
	informer, err := f.cache.GetInformer(ctx, &policyv1alpha1.Policy{})
	if err != nil {
		return fmt.Errorf("watching policies: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: f.enqueue,
		UpdateFunc: func(before, after any) {
			was, ok := before.(*policyv1alpha1.Policy)
			is, ok2 := after.(*policyv1alpha1.Policy)
			// Status is ours, and no news.
			if !ok || !ok2 || was.Generation != is.Generation || was.UID != is.UID {
				f.enqueue(after)
			}
		},
		DeleteFunc: f.enqueue,
	})
	if err != nil {
		return fmt.Errorf("watching policies: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil // told to stop
	}
	if err := f.load(ctx); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, f.queue.ShutDown)
	defer stop()
	for {
		name, over := f.queue.Get()
		if over {
			return nil
		}
		f.follow(ctx, name)
		f.queue.Done(name)
	}
}

func (f *Feed) enqueue(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if policy, ok := object.(*policyv1alpha1.Policy); ok {
		f.queue.Add(policy.Name)
	}
}

// load puts all policies in force at once, so that nobody decides by a part.
func (f *Feed) load(ctx context.Context) error {
	var list policyv1alpha1.PolicyList
	if err := f.cache.List(ctx, &list); err != nil {
		return fmt.Errorf("listing policies: %w", err)
	}
	all := make([]*policyv1alpha1.Policy, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	// Being told to stop is no reason to find fault with a policy's tests.
	f.engine.Replace(context.WithoutCancel(ctx), all)
	for _, state := range f.engine.Policies() {
		f.report(ctx, engine.State{}, state)
	}
	ctrl.LoggerFrom(ctx).Info("Loaded policies", "policies", len(all), "revision", f.engine.Revision())
	return nil
}

// follow puts a policy in force as it is now, or takes it out of force.
func (f *Feed) follow(ctx context.Context, name string) {
	uncancelled := context.WithoutCancel(ctx)
	before := map[string]engine.State{}
	for _, state := range f.engine.Policies() {
		before[state.Policy] = state
	}
	policy := &policyv1alpha1.Policy{}
	err := f.cache.Get(ctx, types.NamespacedName{Name: name}, policy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		f.queue.AddRateLimited(name)
		return
	case apierrors.IsNotFound(err):
		f.engine.Remove(uncancelled, name)
		f.queue.Forget(name)
		f.asker.Forget(name)
		ctrl.LoggerFrom(ctx).Info("Removed policy", "policy", name, "revision", f.engine.Revision())
		f.tell(name)
	default:
		f.engine.Apply(uncancelled, policy)
	}
	// A Library changes others as well.
	for _, state := range f.engine.Policies() {
		was := before[state.Policy]
		if state.Policy == name || changed(was, state) {
			f.report(ctx, was, state)
		}
	}
}

// report says what became of a policy.
func (f *Feed) report(ctx context.Context, before, after engine.State) {
	log := ctrl.LoggerFrom(ctx).WithValues("policy", after.Policy, "revision", after.Revision, "serving", after.Serving)
	if !changed(before, after) {
		log = log.V(1)
	}
	log.Info("Took in policy", "problems", len(after.Problems))
	switch {
	case after.OK():
		f.queue.Forget(after.Policy)
	case changed(before, after):
		f.asker.Broken(after.Policy, whyBroken(after))
		fallthrough
	default:
		f.queue.AddRateLimited(after.Policy)
	}
	f.tell(after.Policy)
}

func changed(before, after engine.State) bool {
	return before.Serving != after.Serving || before.Revision != after.Revision || !slices.Equal(before.Problems, after.Problems)
}

func whyBroken(state engine.State) string {
	if state.Compiled() {
		return tested(state).Reason
	}
	return compiled(state).Reason
}
