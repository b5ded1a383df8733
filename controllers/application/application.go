// Package application makes an application's resources from its templates, keeps
// all its resources on its target, and sums them up in its status.
package application

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/retry"
	"github.com/portico-io/portico/policies/placement"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=delete

// Controller groups resources.
type Controller struct {
	hub      client.Client
	recorder events.EventRecorder
}

// SetupWithManager adds the controller.
func SetupWithManager(mgr ctrl.Manager) error {
	c := &Controller{hub: mgr.GetClient(), recorder: mgr.GetEventRecorder("portico")}
	return ctrl.NewControllerManagedBy(mgr).
		Named("application").
		For(&v1alpha2.KubernetesApplication{}).
		Watches(&v1alpha1.KubernetesApplicationResource{}, gathered()).
		Complete(retry.Quietly(c))
}

// gather is how long changes of an application's resources add up before they
// are summed up: those that are applied together change together, and every sum
// looks at all of them.
const gather = 500 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// gathered queues a resource's application: at once for a new resource that
// waits for its target, and after a while for what resources report.
func gathered() handler.EventHandler {
	at := func(delay time.Duration, q queue, resources ...client.Object) {
		for _, resource := range resources {
			for _, req := range applicationOf(resource) {
				q.AddAfter(req, delay)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if resource, ok := e.Object.(*v1alpha1.KubernetesApplicationResource); ok && resource.Spec.TargetRef == nil {
				at(0, q, resource)
			} else {
				at(gather, q, e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { at(gather, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { at(gather, q, e.Object) },
	}
}

// applicationOf is the application a resource names, and the one that made it,
// which is the same unless somebody changed the label.
func applicationOf(resource client.Object) []reconcile.Request {
	var out []reconcile.Request
	add := func(name string) {
		req := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: resource.GetNamespace(), Name: name}}
		if !slices.Contains(out, req) {
			out = append(out, req)
		}
	}
	if name, ok := resource.GetLabels()[v1alpha1.ApplicationLabel]; ok {
		add(name)
	}
	if ref := metav1.GetControllerOf(resource); ref != nil && isApplication(ref) {
		add(ref.Name)
	}
	return out
}

// nowAndThen is how often, jittered, a name that somebody else's resource has is
// looked at: no event tells this application when it is free.
const nowAndThen = 20 * time.Second

// Reconcile makes the application's resources, gives them its target, and sums
// them up.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	app := &v1alpha2.KubernetesApplication{}
	if err := c.hub.Get(ctx, req.NamespacedName, app); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if app.DeletionTimestamp != nil {
		return reconcile.Result{}, c.withdraw(ctx, app)
	}
	// One resource that is refused holds up no other, nor the summary.
	var errs []error
	obstacles, err := c.ensure(ctx, app)
	errs = append(errs, err)
	var members v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(ctx, &members, client.InNamespace(app.Namespace), client.MatchingLabels{v1alpha1.ApplicationLabel: app.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the resources of application %s: %w", req, err)
	}
	placed := make([]error, len(members.Items))
	workqueue.ParallelizeUntil(ctx, hands, len(placed), func(i int) { placed[i] = c.place(ctx, app, &members.Items[i]) })
	errs = append(errs, placed...)
	errs = append(errs, c.report(ctx, app, members.Items, obstacles))
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, err
	}
	for _, o := range obstacles {
		if o.reason == v1alpha1.ReasonOwnershipConflict {
			return reconcile.Result{RequeueAfter: wait.Jitter(nowAndThen, 0.5)}, nil
		}
	}
	return reconcile.Result{}, nil
}

// place gives a resource the application's target, and with it the finalizer
// that keeps the resource until its object is gone from there, or tells it why
// there is none. A resource that is elsewhere moves.
func (c *Controller) place(ctx context.Context, app *v1alpha2.KubernetesApplication, resource *v1alpha1.KubernetesApplicationResource) error {
	if resource.DeletionTimestamp != nil {
		return nil
	}
	before := resource.DeepCopy()
	if app.Spec.TargetRef != nil {
		if !placement.Relocate(resource, app.Spec.TargetRef.Name) {
			return nil
		}
		controllerutil.AddFinalizer(resource, v1alpha1.PropagationFinalizer)
		// Locked, because a merge patch replaces all finalizers.
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := c.hub.Patch(ctx, resource, patch, client.FieldOwner(v1alpha1.ApplicationManager)); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("placing resource %s: %w", client.ObjectKeyFromObject(resource), err))
		}
		if leaving := resource.Spec.LeavingTargetRef; leaving != nil {
			narrate.Tell(c.recorder, narrate.Subject(resource), "Move", narrate.Event{Reason: v1alpha1.EventMoving, Note: fmt.Sprintf(
				"moves from target %s to target %s, and runs on both until all of application %s is ready there",
				leaving.Name, app.Spec.TargetRef.Name, app.Name)})
		}
		return nil
	}
	if resource.Spec.TargetRef != nil {
		return nil
	}
	scheduled := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.Scheduled)
	if scheduled == nil {
		return nil
	}
	why := *scheduled
	why.ObservedGeneration = resource.Generation
	meta.SetStatusCondition(&resource.Status.Conditions, why)
	for _, kind := range []string{v1alpha1.Synced, v1alpha1.Ready} {
		meta.SetStatusCondition(&resource.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotScheduled,
			Message: "waiting for a target", ObservedGeneration: resource.Generation,
		})
	}
	resource.Status.State = v1alpha1.StatePending
	if equality.Semantic.DeepEqual(before.Status, resource.Status) {
		return nil
	}
	// Locked, because going by a cache that is behind would tell a story twice.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Status().Patch(ctx, resource, patch, client.FieldOwner(v1alpha1.ApplicationManager)); err != nil {
		return client.IgnoreNotFound(err)
	}
	narrate.Tell(c.recorder, narrate.Subject(resource), "Schedule", narrate.Changes(before.Status.Conditions, resource.Status.Conditions)...)
	return nil
}

// report writes the application's status, when it changed. An application that
// Portico made goes with its last resource; intake makes it anew when needed.
func (c *Controller) report(ctx context.Context, app *v1alpha2.KubernetesApplication, members []v1alpha1.KubernetesApplicationResource, obstacles map[string]obstacle) error {
	if len(members) == 0 && app.Labels[v1alpha1.FrontDoorLabel] == v1alpha1.FrontDoor && len(app.Spec.ResourceTemplates) == 0 {
		return c.retire(ctx, app)
	}
	before := app.DeepCopy()
	summarize(app, members, obstacles)
	if equality.Semantic.DeepEqual(before.Status, app.Status) {
		return nil
	}
	err := c.hub.Status().Patch(ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.ApplicationManager))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of application %s: %w", client.ObjectKeyFromObject(app), err))
	}
	if len(app.Spec.ResourceTemplates) > 0 { // of the others, each native object tells its own story
		narrate.Tell(c.recorder, app, "Apply", narrate.Changes(before.Status.Conditions, app.Status.Conditions)...)
	}
	return nil
}

// retire deletes an empty application of Portico's own, if it had members once.
func (c *Controller) retire(ctx context.Context, app *v1alpha2.KubernetesApplication) error {
	if app.Status.DesiredResources == 0 {
		return nil
	}
	err := c.hub.Delete(ctx, app, client.Preconditions{UID: ptr.To(app.UID), ResourceVersion: ptr.To(app.ResourceVersion)})
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("deleting application %s, which has no resources left: %w", client.ObjectKeyFromObject(app), err))
	}
	return nil
}
