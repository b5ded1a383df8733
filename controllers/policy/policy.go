package policy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/retry"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/survey"
)

// +kubebuilder:rbac:groups=policy.workload.crossplane.io,resources=policies,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=policy.workload.crossplane.io,resources=policies/status,verbs=patch

// Controller reports what became of each policy. It runs on the leader, and
// reports what the leader's engine made of it: every replica has the same.
type Controller struct {
	hub      client.Client
	engine   *engine.Engine
	recorder events.EventRecorder
	shipped  map[string]*policyv1alpha1.Policy
	audits   *auditor
}

// SetupWithManager adds the controllers that only the leader runs. exempt is the
// namespace that never meets a policy.
func SetupWithManager(mgr ctrl.Manager, feed *Feed, exempt string) error {
	shipped, err := shippedByName()
	if err != nil {
		return err
	}
	c := &Controller{
		hub: mgr.GetClient(), engine: feed.engine, recorder: mgr.GetEventRecorder("portico"),
		shipped: shipped, audits: newAuditor(mgr, feed, exempt),
	}
	if err := mgr.Add(c.audits); err != nil {
		return fmt.Errorf("adding the audit: %w", err)
	}
	if err := metrics.Registry.Register(violations{c.audits}); err != nil {
		return fmt.Errorf("adding the metric of violations: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("policy").
		// Its own reports wake it as well: one that was made from a cache that
		// was behind is looked at again once the cache has it.
		For(&policyv1alpha1.Policy{}).
		WatchesRawSource(source.TypedFunc[reconcile.Request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			report := func(policy string) { q.Add(request(policy)) }
			feed.Listen(report)
			c.audits.listen(report)
			for name := range shipped {
				q.Add(request(name))
			}
			return nil
		})).
		Complete(retry.Quietly(c))
}

func request(policy string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: policy}}
}

// Reconcile sees to one policy: that it is there, if Portico ships it, and that
// its status is true.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	policy := &policyv1alpha1.Policy{}
	err := c.hub.Get(ctx, req.NamespacedName, policy)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil {
		return c.create(ctx, req.Name)
	}
	if policy.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if upgraded, err := c.upgrade(ctx, policy); err != nil || upgraded {
		return reconcile.Result{}, err
	}
	state, known := c.engine.Policy(policy.Name)
	if !known || state.Revision != engine.Revision(policy.Spec) {
		return reconcile.Result{}, nil // the feed is about to tell
	}
	return reconcile.Result{}, c.report(ctx, policy, state)
}

// report writes the status when it changed.
func (c *Controller) report(ctx context.Context, policy *policyv1alpha1.Policy, state engine.State) error {
	before := policy.DeepCopy()
	describe(policy, state, c.shippedRevision(policy.Name))
	if audit := c.audits.of(policy.Name); audit != nil && !survey.Same(audit, policy.Status.Audit) {
		policy.Status.Audit = audit.DeepCopy() // when it was last run is no news
	}
	if equality.Semantic.DeepEqual(before.Status, policy.Status) {
		return nil
	}
	err := c.hub.Status().Patch(ctx, policy, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(policyv1alpha1.PolicyManager))
	if err != nil {
		return fmt.Errorf("writing the status of policy %s: %w", policy.Name, err)
	}
	narrate.Tell(c.recorder, policy, "Decide", story(before.Status, policy.Status)...)
	return nil
}
