package policy

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/simulate"
)

// +kubebuilder:rbac:groups=policy.workload.crossplane.io,resources=policies,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=policy.workload.crossplane.io,resources=policies/status,verbs=patch

// Controller writes the status of policies, and creates and upgrades the policies that
// Portico ships. It runs on the leader, and reports the state of the leader's engine.
// The engines of all replicas have the same policies.
type Controller struct {
	hub      client.Client
	writer   reconciler.Writer
	engine   *engine.Engine
	recorder events.Recorder
	shipped  map[string]*policyv1alpha1.Policy
	audits   *auditor
}

// SetupWithManager adds the controller and the audit, which run on the leader. Policies
// are not evaluated for the namespace portico, in which Portico runs.
func SetupWithManager(mgr ctrl.Manager, loader *Loader, portico string) error {
	shipped, err := shippedByName()
	if err != nil {
		return err
	}
	c := &Controller{
		hub: mgr.GetClient(), writer: reconciler.Writer{Client: mgr.GetClient(), Owner: policyv1alpha1.PolicyManager},
		engine: loader.engine, recorder: mgr.GetEventRecorder("portico"),
		shipped: shipped, audits: newAuditor(mgr, loader, policies.AllowDefaults{PorticoNamespace: portico}),
	}
	if err := mgr.Add(c.audits); err != nil {
		return fmt.Errorf("adding the audit: %w", err)
	}
	if err := metrics.Registry.Register(violations{c.audits}); err != nil {
		return fmt.Errorf("adding the metric of violations: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("policy").
		// The status is watched too: a status that was computed from an old cache is
		// computed again with the newer object.
		For(&policyv1alpha1.Policy{}).
		WatchesRawSource(source.TypedFunc[reconcile.Request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			enqueue := func(policy string) { q.Add(request(policy)) }
			loader.Listen(enqueue)
			c.audits.onChange(enqueue)
			for name := range shipped {
				enqueue(name)
			}
			return nil
		})).
		Complete(reconciler.RetryOnConflict(c))
}

func request(policy string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: policy}}
}

// scope is the state of one reconcile. The steps set the status in memory.
type scope struct {
	policy *policyv1alpha1.Policy
	before *policyv1alpha1.Policy
}

// Reconcile creates or upgrades a shipped policy, and writes the status of a policy.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	policy := &policyv1alpha1.Policy{}
	err := c.hub.Get(ctx, req.NamespacedName, policy)
	switch {
	case apierrors.IsNotFound(err):
		return reconciler.Result(c.createShipped(ctx, req.Name))
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading policy %s: %w", req.Name, err)
	case policy.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	}
	return reconciler.Run(ctx, &scope{policy: policy, before: policy.DeepCopy()}, []reconciler.Step[*scope]{
		{Name: "upgrade", Run: c.upgradeShipped},
		{Name: "describe", Run: c.describe},
		{Name: "add audit", Run: c.addAudit},
	}, c.patchStatus)
}

// describe sets the status from the state of the engine.
func (c *Controller) describe(_ context.Context, s *scope) error {
	state, known := c.engine.Policy(s.policy.Name)
	if !known || state.Revision != engine.Revision(s.policy.Spec) {
		return reconciler.ErrDone // the loader queues the policy once it has this revision
	}
	describe(s.policy, state, c.shippedRevision(s.policy.Name))
	return nil
}

// addAudit sets the result of the last audit, if it changed. The time of the audit alone
// is no change.
func (c *Controller) addAudit(_ context.Context, s *scope) error {
	if audit := c.audits.result(s.policy.Name); audit != nil && !simulate.SameAudit(audit, s.policy.Status.Audit) {
		s.policy.Status.Audit = audit.DeepCopy()
	}
	return nil
}

func (c *Controller) patchStatus(ctx context.Context, s *scope) error {
	written, err := c.writer.PatchStatus(ctx, s.before, s.policy)
	if written {
		events.Emit(c.recorder, s.policy, "Decide", statusEvents(s.before.Status, s.policy.Status)...)
	}
	return err
}
