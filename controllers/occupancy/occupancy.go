// Package occupancy keeps a KubernetesTarget while resources are on it, and lets
// them go when the target is released.
package occupancy

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/retry"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications;kubernetesapplicationresources,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications/status;kubernetesapplicationresources/status;kubernetestargets/status,verbs=patch

// Controller keeps targets. Admission refuses to delete one that is in use; the
// finalizer is for what admission does not see, such as a resource that is placed
// while its target is being deleted.
type Controller struct {
	hub      client.Client
	recorder events.EventRecorder
}

// SetupWithManager adds the controller.
func SetupWithManager(mgr ctrl.Manager) error {
	c := &Controller{hub: mgr.GetClient(), recorder: mgr.GetEventRecorder("portico")}
	return ctrl.NewControllerManagedBy(mgr).
		Named("occupancy").
		For(&v1alpha1.KubernetesTarget{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deleting()))).
		Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(targetsOf), builder.WithPredicates(comesOrGoes())).
		Complete(retry.Quietly(c))
}

func deleting() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(target client.Object) bool { return target.GetDeletionTimestamp() != nil })
}

func targetsOf(_ context.Context, object client.Object) []reconcile.Request {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	var out []reconcile.Request
	for _, name := range policies.TargetsOf(resource) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: resource.Namespace, Name: name}})
	}
	return out
}

// comesOrGoes passes a resource whose targets change.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*v1alpha1.KubernetesApplicationResource)
		is, ok2 := e.ObjectNew.(*v1alpha1.KubernetesApplicationResource)
		return !ok || !ok2 || !slices.Equal(policies.TargetsOf(was), policies.TargetsOf(is))
	}}
}

// Reconcile keeps one target, or lets it go.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := c.hub.Get(ctx, req.NamespacedName, target); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(ctx, &list, client.InNamespace(target.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the resources on target %s: %w", req, err)
	}
	on := policies.OnTarget(target.Name, list.Items)
	if err := c.found(ctx, target, on); err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case len(on) == 0:
		return reconcile.Result{}, c.keep(ctx, target, controllerutil.RemoveFinalizer)
	case target.DeletionTimestamp == nil:
		return reconcile.Result{}, c.keep(ctx, target, controllerutil.AddFinalizer)
	case policies.Released(target):
		// The target goes when the cache has seen the last resource leave it.
		return reconcile.Result{}, c.release(ctx, target, on)
	default:
		narrate.Tell(c.recorder, target, "Delete", narrate.Event{Warning: true, Reason: v1alpha1.EventInUse, Note: policies.KeepTarget(target.Name, on)})
		return reconcile.Result{}, nil
	}
}

func (c *Controller) keep(ctx context.Context, target *v1alpha1.KubernetesTarget, change func(client.Object, string) bool) error {
	before := target.DeepCopy()
	if !change(target, v1alpha1.InUseFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Patch(ctx, target, patch, client.FieldOwner(v1alpha1.TargetManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("changing the finalizer of target %s: %w", client.ObjectKeyFromObject(target), err))
	}
	return nil
}

// found takes what is a resource's again off the list of what was left behind.
func (c *Controller) found(ctx context.Context, target *v1alpha1.KubernetesTarget, on []v1alpha1.KubernetesApplicationResource) error {
	left := policies.StillLeft(target.Status.LeftBehind, on)
	if len(left) == len(target.Status.LeftBehind) {
		return nil
	}
	before := target.DeepCopy()
	target.Status.LeftBehind = left
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Status().Patch(ctx, target, patch, client.FieldOwner(v1alpha1.TargetManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of target %s: %w", client.ObjectKeyFromObject(target), err))
	}
	return nil
}

// condition says of what was on a released target that it is nowhere now.
func condition(target string, generation int64) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.Scheduled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTargetReleased, ObservedGeneration: generation,
		Message: fmt.Sprintf("target %s was given up; what ran there stays behind", target),
	}
}
