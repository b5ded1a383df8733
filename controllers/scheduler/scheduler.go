// Package scheduler gives every KubernetesApplication, and every
// KubernetesApplicationResource that belongs to none, a KubernetesTarget. A
// choice, once made, stays, until somebody asks to move.
package scheduler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/consult"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/retry"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/placement"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications/status,verbs=patch

// Controller schedules applications.
type Controller struct {
	hub      client.Client
	customs  customs
	council  council
	recorder events.EventRecorder
}

// SetupWithManager adds the controllers. frontier is what targets let in by
// default, and asker asks the policies.
func SetupWithManager(mgr ctrl.Manager, frontier policies.Frontier, asker *decisions.Asker) error {
	customs := customs{frontier: frontier, scope: policies.ScopeFrom(mgr.GetRESTMapper())}
	council := council{hub: mgr.GetClient(), asker: asker}
	c := &Controller{hub: mgr.GetClient(), customs: customs, council: council, recorder: mgr.GetEventRecorder("portico")}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("scheduler").
		For(&v1alpha2.KubernetesApplication{}).
		Watches(&v1alpha1.KubernetesTarget{}, handler.EnqueueRequestsFromMapFunc(c.waiting)).
		Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(firstMember), builder.WithPredicates(created())).
		Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(applicationOf), builder.WithPredicates(left())).
		WatchesRawSource(consult.OnChange(asker, func(ctx context.Context) []reconcile.Request { return c.unsettled(ctx) })).
		Complete(retry.Quietly(c))
	if err != nil {
		return fmt.Errorf("adding the scheduler of applications: %w", err)
	}
	r := &resources{hub: mgr.GetClient(), customs: customs, council: council, recorder: mgr.GetEventRecorder("portico")}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("scheduler-resources").
		For(&v1alpha1.KubernetesApplicationResource{}, builder.WithPredicates(predicate.NewPredicateFuncs(unsettled))).
		Watches(&v1alpha1.KubernetesTarget{}, handler.EnqueueRequestsFromMapFunc(r.waiting)).
		WatchesRawSource(consult.OnChange(asker, func(ctx context.Context) []reconcile.Request { return r.unsettled(ctx) })).
		Complete(retry.Quietly(r))
	if err != nil {
		return fmt.Errorf("adding the scheduler of resources: %w", err)
	}
	return nil
}

// waiting are the applications a change of a target may matter to: those in its
// namespace that have none, or are to leave theirs.
func (c *Controller) waiting(ctx context.Context, target client.Object) []reconcile.Request {
	return c.unsettled(ctx, client.InNamespace(target.GetNamespace()))
}

func (c *Controller) unsettled(ctx context.Context, where ...client.ListOption) []reconcile.Request {
	var list v1alpha2.KubernetesApplicationList
	if err := c.hub.List(ctx, &list, where...); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if _, asked := leaves(&list.Items[i]); asked || list.Items[i].Spec.TargetRef == nil {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// Reconcile schedules one application.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	app := &v1alpha2.KubernetesApplication{}
	if err := c.hub.Get(ctx, req.NamespacedName, app); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if app.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	from, asked := leaves(app)
	if at := app.Spec.TargetRef; at != nil && !asked {
		return reconcile.Result{}, c.report(ctx, app, scheduled(app, at.Name, ""))
	} else if at != nil && at.Name != from {
		return reconcile.Result{}, c.place(ctx, app, at.Name, "") // it is where it wants to be
	}
	around, err := c.customs.around(ctx, c.hub, app.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	members := around.Members(app.Name)
	if !asked && !ready(app, members) {
		return reconcile.Result{}, nil
	}
	q, err := around.Application(app, from)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	said, err := c.council.hear(ctx, app.Namespace, input.Application{Name: app.Name}, q, sends(app, members))
	if err != nil {
		return reconcile.Result{}, err
	}
	if !said.Allowed() && app.Spec.TargetRef == nil {
		return reconcile.Result{RequeueAfter: again(said)}, c.report(ctx, app, denied(app, said))
	}
	decision := placement.Decide(obey(q, said))
	switch {
	case decision.Target != "":
		return reconcile.Result{}, c.place(ctx, app, decision.Target, decision.Because())
	case app.Spec.TargetRef != nil:
		stuck := stays(app, "application", from, decision)
		news := narrate.Event{Warning: true, Reason: stuck.Reason, Note: stuck.Message}
		if known := meta.FindStatusCondition(app.Status.Conditions, stuck.Type); known != nil && known.Message == stuck.Message {
			return reconcile.Result{RequeueAfter: again(said)}, nil
		}
		if err := c.report(ctx, app, stuck); err != nil {
			return reconcile.Result{}, err
		}
		narrate.Tell(c.recorder, app, "Move", news)
		for i := range members {
			narrate.Tell(c.recorder, narrate.Subject(&members[i]), "Move", news)
		}
		return reconcile.Result{RequeueAfter: again(said)}, nil
	default:
		return reconcile.Result{}, c.report(ctx, app, nowhere(app, decision))
	}
}

// place gives an application a target, which is what it may have been asked to,
// and says what became of the others.
func (c *Controller) place(ctx context.Context, app *v1alpha2.KubernetesApplication, target, because string) error {
	before := app.DeepCopy()
	app.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	delete(app.Annotations, v1alpha1.MoveFromAnnotation)
	err := c.hub.Patch(ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.SchedulerManager))
	if err != nil {
		return fmt.Errorf("scheduling application %s to target %s: %w", client.ObjectKeyFromObject(app), target, err)
	}
	ctrl.LoggerFrom(ctx).Info("Scheduled application", "target", target, "before", before.Spec.TargetRef)
	return c.report(ctx, app, scheduled(app, target, because))
}

// nowhere is the condition of an object that fits no target.
func nowhere(object client.Object, decision placement.Decision) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.Scheduled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoMatchingTarget,
		Message: decision.Why(object.GetNamespace()), ObservedGeneration: object.GetGeneration(),
	}
}

func (c *Controller) report(ctx context.Context, app *v1alpha2.KubernetesApplication, condition metav1.Condition) error {
	before := app.DeepCopy()
	meta.SetStatusCondition(&app.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(before.Status, app.Status) {
		return nil
	}
	if err := c.hub.Status().Patch(ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.SchedulerManager)); err != nil {
		return fmt.Errorf("writing the status of application %s: %w", client.ObjectKeyFromObject(app), err)
	}
	narrate.Tell(c.recorder, app, "Schedule", narrate.Changes(before.Status.Conditions, app.Status.Conditions)...)
	return nil
}
