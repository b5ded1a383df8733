package scheduler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/placement"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources/status,verbs=patch

// resources schedules the resources that a user wrote by themselves (S4).
type resources struct {
	hub      client.Client
	customs  customs
	council  council
	recorder events.EventRecorder
}

// unsettled tells a resource that has no target, or is to leave it, and that no
// application speaks for.
func unsettled(object client.Object) bool {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok || resource.DeletionTimestamp != nil {
		return false
	}
	_, member := resource.Labels[v1alpha1.ApplicationLabel]
	_, asked := leaves(resource)
	return !member && metav1.GetControllerOf(resource) == nil && (asked || resource.Spec.TargetRef == nil)
}

// waiting are the resources a change of a target may matter to.
func (r *resources) waiting(ctx context.Context, target client.Object) []reconcile.Request {
	return r.unsettled(ctx, client.InNamespace(target.GetNamespace()))
}

func (r *resources) unsettled(ctx context.Context, where ...client.ListOption) []reconcile.Request {
	var list v1alpha1.KubernetesApplicationResourceList
	if err := r.hub.List(ctx, &list, where...); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if unsettled(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// Reconcile schedules one resource.
func (r *resources) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	if err := r.hub.Get(ctx, req.NamespacedName, resource); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !unsettled(resource) {
		return reconcile.Result{}, nil
	}
	around, err := r.customs.around(ctx, r.hub, resource.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	from, _ := leaves(resource)
	q, err := around.Resource(resource, from)
	if err != nil { // admission was away
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	said, err := r.council.hear(ctx, resource.Namespace, input.Application{}, q, sends(nil, []v1alpha1.KubernetesApplicationResource{*resource}))
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := placement.Decide(obey(q, said))
	if at := resource.Spec.TargetRef; at != nil && at.Name != from {
		decision.Target = at.Name // it is where it wants to be
	}
	before := resource.DeepCopy()
	locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if decision.Target == "" {
		var told []narrate.Event
		if resource.Spec.TargetRef != nil {
			stuck := stays(resource, "resource", from, decision)
			meta.SetStatusCondition(&resource.Status.Conditions, stuck)
			told = append(told, narrate.Event{Warning: true, Reason: stuck.Reason, Note: stuck.Message})
		} else {
			why := nowhere(resource, decision)
			if !said.Allowed() {
				why = denied(resource, said)
			}
			meta.SetStatusCondition(&resource.Status.Conditions, why)
			resource.Status.State = v1alpha1.StatePending
		}
		if equality.Semantic.DeepEqual(before.Status, resource.Status) {
			return reconcile.Result{RequeueAfter: again(said)}, nil
		}
		if err := r.hub.Status().Patch(ctx, resource, locked, client.FieldOwner(v1alpha1.SchedulerManager)); err != nil {
			return reconcile.Result{}, fmt.Errorf("writing the status of resource %s: %w", req, err)
		}
		told = append(told, narrate.Changes(before.Status.Conditions, resource.Status.Conditions)...)
		narrate.Tell(r.recorder, resource, "Schedule", told...)
		return reconcile.Result{RequeueAfter: again(said)}, nil
	}
	// Propagation takes it from here, and says so in the status.
	placement.Relocate(resource, decision.Target)
	delete(resource.Annotations, v1alpha1.MoveFromAnnotation)
	controllerutil.AddFinalizer(resource, v1alpha1.PropagationFinalizer)
	if err := r.hub.Patch(ctx, resource, locked, client.FieldOwner(v1alpha1.SchedulerManager)); err != nil {
		return reconcile.Result{}, fmt.Errorf("scheduling resource %s to target %s: %w", req, decision.Target, err)
	}
	ctrl.LoggerFrom(ctx).Info("Scheduled resource", "target", decision.Target)
	return reconcile.Result{}, nil
}
