package scheduler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/targetselection"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications/status,verbs=patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources/status,verbs=patch

// SetupWithManager adds the controllers of applications and of resources.
func SetupWithManager(mgr ctrl.Manager, allowDefaults policies.AllowDefaults, evaluator *decisions.Evaluator, load *targetselection.Load, synced *LoadSynced) error {
	shared := newScheduler(mgr.GetClient(), mgr.GetEventRecorder("portico"), nil, load)
	shared.synced, shared.allowDefaults, shared.clusterScoped = synced, allowDefaults, policies.ClusterScopedFrom(mgr.GetRESTMapper())
	a, r := &applications{shared}, &resources{shared}
	a.reviews, r.reviews = policycheck.NewReviews(evaluator, "scheduler"), policycheck.NewReviews(evaluator, "scheduler")
	unscheduledApplications := unscheduled{mgr.GetClient(), func() client.ObjectList { return &v1alpha2.KubernetesApplicationList{} }}
	unscheduledResources := unscheduled{mgr.GetClient(), func() client.ObjectList { return &v1alpha1.KubernetesApplicationResourceList{} }}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("scheduler").
		For(&v1alpha2.KubernetesApplication{}).
		Watches(&v1alpha1.KubernetesTarget{}, handler.EnqueueRequestsFromMapFunc(unscheduledApplications.inNamespace)).
		Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(applicationOf), builder.WithPredicates(memberChanged())).
		WatchesRawSource(policycheck.OnChange(evaluator, func(ctx context.Context) []reconcile.Request { return unscheduledApplications.list(ctx) })).
		Complete(reconciler.RetryOnConflict(a))
	if err != nil {
		return fmt.Errorf("adding the scheduler of applications: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("scheduler-resources").
		For(&v1alpha1.KubernetesApplicationResource{}, builder.WithPredicates(predicate.NewPredicateFuncs(isUnscheduled))).
		Watches(&v1alpha1.KubernetesTarget{}, handler.EnqueueRequestsFromMapFunc(unscheduledResources.inNamespace)).
		WatchesRawSource(policycheck.OnChange(evaluator, func(ctx context.Context) []reconcile.Request { return unscheduledResources.list(ctx) })).
		Complete(reconciler.RetryOnConflict(r))
	if err != nil {
		return fmt.Errorf("adding the scheduler of resources: %w", err)
	}
	return nil
}

// applications schedules KubernetesApplications.
type applications struct{ scheduler }

// Reconcile schedules one application.
func (a *applications) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	app := &v1alpha2.KubernetesApplication{}
	if exists, err := reconciler.Find(ctx, a.hub, req.NamespacedName, app); err != nil {
		return reconcile.Result{}, err
	} else if !exists || app.DeletionTimestamp != nil {
		a.reviews.Forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	return a.schedule(ctx, application{app})
}

// resources schedules the resources that a user wrote without an application (S4).
type resources struct{ scheduler }

// Reconcile schedules one resource.
func (r *resources) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	read := &v1alpha1.KubernetesApplicationResource{}
	if exists, err := reconciler.Find(ctx, r.hub, req.NamespacedName, read); err != nil {
		return reconcile.Result{}, err
	} else if !exists || !isUnscheduled(read) {
		r.reviews.Forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	return r.schedule(ctx, resource{read})
}

// unscheduled lists the units of one kind that have no target, or have to leave it: a
// change of a target may place them.
type unscheduled struct {
	hub     client.Reader
	newList func() client.ObjectList
}

// inNamespace lists the units that a change of a target may place.
func (u unscheduled) inNamespace(ctx context.Context, target client.Object) []reconcile.Request {
	return u.list(ctx, client.InNamespace(target.GetNamespace()))
}

// list lists the units of all namespaces, unless an option restricts it.
func (u unscheduled) list(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := u.newList()
	options = append(options, client.MatchingFields{policies.UnscheduledIndex: policies.Unscheduled}, client.UnsafeDisableDeepCopy)
	if err := u.hub.List(ctx, list, options...); err != nil {
		return nil // the cache has stopped
	}
	out := make([]reconcile.Request, 0, meta.LenList(list))
	_ = meta.EachListItem(list, func(item runtime.Object) error { // neither the list nor the function returns an error
		if object, ok := item.(client.Object); ok {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		return nil
	})
	return out
}

// isUnscheduled tells whether an object is a resource that this scheduler places: it
// has no application, and has no target or has to leave it.
func isUnscheduled(object client.Object) bool {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok || resource.DeletionTimestamp != nil {
		return false
	}
	_, member := resource.Labels[v1alpha1.ApplicationLabel]
	_, moving := moveFrom(resource)
	return !member && metav1.GetControllerOf(resource) == nil && (moving || resource.Spec.TargetRef == nil)
}

// memberChanged passes the changes of resources that may let their application be
// scheduled: a new member, a change or the deletion of a member that has no target, and
// a member that has left its last target.
func memberChanged() predicate.Predicate {
	waits := func(object client.Object) bool {
		resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
		return ok && resource.Spec.TargetRef == nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return waits(e.Object) && e.Object.GetDeletionTimestamp() == nil },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*v1alpha1.KubernetesApplicationResource)
			is, ok2 := e.ObjectNew.(*v1alpha1.KubernetesApplicationResource)
			if !ok || !ok2 {
				return false
			}
			changed := is.Generation != was.Generation || reconciler.DeletionStarted(was, is)
			return changed && waits(is) || was.Spec.LeavingTargetRef != nil && is.Spec.LeavingTargetRef == nil
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return waits(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func applicationOf(_ context.Context, resource client.Object) []reconcile.Request {
	name, member := resource.GetLabels()[v1alpha1.ApplicationLabel]
	if !member {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: resource.GetNamespace(), Name: name}}}
}
