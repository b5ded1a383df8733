// Package policy loads the Policies of the hub into the engine, and writes their status.
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

// Loader loads the Policies of the hub into the engine of one replica. It runs on every
// replica, because every replica evaluates policies.
type Loader struct {
	engine    *engine.Engine
	evaluator *decisions.Evaluator
	cache     cache.Cache
	queue     workqueue.TypedRateLimitingInterface[string]

	mu        sync.Mutex
	listeners []func(policy string)
}

// A policy that does not compile is compiled again: its tests may have run out of time on
// a busy machine.
const (
	recompileBackoff    = 2 * time.Second
	maxRecompileBackoff = 5 * time.Minute
)

// NewLoader adds a loader to the manager. The evaluator counts the policies that do not
// load.
func NewLoader(mgr ctrl.Manager, e *engine.Engine, evaluator *decisions.Evaluator) (*Loader, error) {
	l := &Loader{
		engine:    e,
		evaluator: evaluator,
		cache:     mgr.GetCache(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](recompileBackoff, maxRecompileBackoff)),
	}
	if err := mgr.Add(l); err != nil {
		return nil, fmt.Errorf("adding the loader of policies: %w", err)
	}
	return l, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l *Loader) NeedLeaderElection() bool { return false }

// Ready fails until every Policy that existed at the start is loaded, or known to have
// problems.
func (l *Loader) Ready(*http.Request) error {
	select {
	case <-l.engine.Loaded():
		return nil
	default:
		return errors.New("policies are not loaded")
	}
}

// Listen adds a function that is called for every policy whose state may have changed.
func (l *Loader) Listen(listener func(policy string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners = append(l.listeners, listener)
}

func (l *Loader) notify(policy string) {
	l.mu.Lock()
	listeners := slices.Clone(l.listeners)
	l.mu.Unlock()
	for _, listener := range listeners {
		listener(policy)
	}
}

// Start implements manager.Runnable.
func (l *Loader) Start(ctx context.Context) error {
	informer, err := l.cache.GetInformer(ctx, &policyv1alpha1.Policy{})
	if err != nil {
		return fmt.Errorf("watching policies: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: l.enqueue,
		UpdateFunc: func(before, after any) {
			old, ok := before.(*policyv1alpha1.Policy)
			updated, ok2 := after.(*policyv1alpha1.Policy)
			// An update of the status changes no decision.
			if !ok || !ok2 || old.Generation != updated.Generation || old.UID != updated.UID {
				l.enqueue(after)
			}
		},
		DeleteFunc: l.enqueue,
	})
	if err != nil {
		return fmt.Errorf("watching policies: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil // ctx ended
	}
	if err := l.loadAll(ctx); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, l.queue.ShutDown)
	defer stop()
	for {
		name, over := l.queue.Get()
		if over {
			return nil
		}
		l.loadPolicy(ctx, name)
		l.queue.Done(name)
	}
}

func (l *Loader) enqueue(object any) {
	if deleted, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = deleted.Obj
	}
	if policy, ok := object.(*policyv1alpha1.Policy); ok {
		l.queue.Add(policy.Name)
	}
}

// loadAll loads all policies at once, so that no request is decided with a part of
// them.
func (l *Loader) loadAll(ctx context.Context) error {
	var list policyv1alpha1.PolicyList
	if err := l.cache.List(ctx, &list); err != nil {
		return fmt.Errorf("listing policies: %w", err)
	}
	all := make([]*policyv1alpha1.Policy, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	// The end of ctx must not fail the tests of a policy.
	l.engine.Replace(context.WithoutCancel(ctx), all)
	for _, state := range l.engine.Policies() {
		l.reportState(ctx, engine.State{}, state)
	}
	ctrl.LoggerFrom(ctx).Info("Loaded policies", "policies", len(all), "revision", l.engine.Revision())
	return nil
}

// loadPolicy loads the current version of a policy, or removes a deleted one.
func (l *Loader) loadPolicy(ctx context.Context, name string) {
	uncancelled := context.WithoutCancel(ctx)
	before := map[string]engine.State{}
	for _, state := range l.engine.Policies() {
		before[state.Policy] = state
	}
	policy := &policyv1alpha1.Policy{}
	err := l.cache.Get(ctx, types.NamespacedName{Name: name}, policy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		l.queue.AddRateLimited(name)
		return
	case apierrors.IsNotFound(err):
		l.engine.Remove(uncancelled, name)
		l.queue.Forget(name)
		l.evaluator.DeleteMetrics(name)
		ctrl.LoggerFrom(ctx).Info("Removed policy", "policy", name, "revision", l.engine.Revision())
		l.notify(name)
	default:
		l.engine.Apply(uncancelled, policy)
	}
	// A Library changes the policies that import it.
	for _, state := range l.engine.Policies() {
		old := before[state.Policy]
		if state.Policy == name || stateChanged(old, state) {
			l.reportState(ctx, old, state)
		}
	}
}

// reportState logs the state of a policy, and calls the listeners.
func (l *Loader) reportState(ctx context.Context, before, after engine.State) {
	log := ctrl.LoggerFrom(ctx).WithValues("policy", after.Policy, "revision", after.Revision, "serving", after.Serving)
	if !stateChanged(before, after) {
		log = log.V(1)
	}
	log.Info("Loaded policy", "problems", len(after.Problems))
	switch {
	case after.OK():
		l.queue.Forget(after.Policy)
	case stateChanged(before, after):
		l.evaluator.CountBroken(after.Policy, brokenReason(after))
		fallthrough
	default:
		l.queue.AddRateLimited(after.Policy)
	}
	l.notify(after.Policy)
}

func stateChanged(before, after engine.State) bool {
	return before.Serving != after.Serving || before.Revision != after.Revision || !slices.Equal(before.Problems, after.Problems)
}

func brokenReason(state engine.State) string {
	if state.Compiled() {
		return tested(state).Reason
	}
	return compiled(state).Reason
}
