// Package application reconciles KubernetesApplications: it makes the resources of
// their templates, places all their resources on one target, and summarizes the
// resources in the status.
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
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/targetselection"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=delete

// Controller reconciles KubernetesApplications.
type Controller struct {
	hub       client.Client
	writer    reconciler.Writer
	recorder  events.Recorder
	orphaning reconciler.OrphaningOwners
	statuses  reconciler.Pace
}

func newController(hub client.Client, recorder events.Recorder) *Controller {
	return &Controller{
		hub: hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.ApplicationManager}, recorder: recorder,
		statuses: reconciler.Pace{Interval: statusInterval},
	}
}

// SetupWithManager adds the controller to the manager.
func SetupWithManager(mgr ctrl.Manager) error {
	c := newController(mgr.GetClient(), mgr.GetEventRecorder("portico"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("application").
		For(&v1alpha2.KubernetesApplication{}).
		Watches(&v1alpha2.KubernetesApplication{}, c.orphaning.Handler()).
		Watches(&v1alpha1.KubernetesApplicationResource{}, resourceHandler()).
		Complete(reconciler.RetryOnConflict(c))
}

// summaryDelay collects changes of an application's resources. Resources that are
// applied together change together, and each summary reads all of them.
const summaryDelay = 500 * time.Millisecond

// statusInterval is the time between two statuses of an application.
const statusInterval = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// resourceHandler queues the application of a resource: at once for a new resource
// without a target, and after summaryDelay for every other change.
func resourceHandler() handler.EventHandler {
	enqueue := func(delay time.Duration, q queue, resources ...client.Object) {
		for _, resource := range resources {
			for _, req := range applicationOf(resource) {
				q.AddAfter(req, delay)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if resource, ok := e.Object.(*v1alpha1.KubernetesApplicationResource); ok && resource.Spec.TargetRef == nil {
				enqueue(0, q, resource)
			} else {
				enqueue(summaryDelay, q, e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			enqueue(summaryDelay, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(summaryDelay, q, e.Object) },
	}
}

// applicationOf returns the application that a resource names in its label, and the
// one that controls it. The two differ if a user changed the label.
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

// nameConflictRequeueAfter is the jittered delay of the next try if a resource of
// another owner has the name of a template. No event tells this application that the
// name is free.
const nameConflictRequeueAfter = 20 * time.Second

// scope is the state of one reconcile.
type scope struct {
	app    *v1alpha2.KubernetesApplication
	before *v1alpha2.KubernetesApplication
	// members are the application's resources. The cache owns them until they are
	// copied for a change.
	members []v1alpha1.KubernetesApplicationResource
	// problems are the reasons why templates have no resource, by the name of the
	// resource.
	problems map[string]templateProblem
	// errs are the errors of single resources. They do not delay other resources or the
	// summary.
	errs []error
	// holdStatus says that a later reconcile writes the status.
	holdStatus bool
}

// Reconcile makes the application's resources, places them, and summarizes them.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	app := &v1alpha2.KubernetesApplication{}
	switch exists, err := reconciler.Find(ctx, c.hub, req.NamespacedName, app); {
	case err != nil:
		return reconcile.Result{}, err
	case !exists:
		c.orphaning.ForgetGone(req.NamespacedName)
		c.statuses.Forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	ctx = reconciler.WithLogValues(ctx, "application", klog.KObj(app))
	if app.Spec.TargetRef != nil {
		ctx = reconciler.WithLogValues(ctx, "target", klog.KRef(app.Namespace, app.Spec.TargetRef.Name))
	}
	steps := []reconciler.Step[*scope]{
		{Name: "ensure resources", Run: c.ensureResources},
		{Name: "list members", Run: c.listMembers},
		{Name: "place resources", Run: c.placeResources},
		{Name: "delete empty application", Run: c.deleteEmptyApplication},
		{Name: "summarize", Run: c.summarize},
	}
	if app.DeletionTimestamp != nil {
		steps = []reconciler.Step[*scope]{{Name: "delete resources", Run: c.deleteResources}}
	}
	return reconciler.Run(ctx, &scope{app: app, before: app.DeepCopy()}, steps, c.patchStatus)
}

// listMembers reads the resources that name the application in their label.
func (c *Controller) listMembers(ctx context.Context, s *scope) error {
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.hub.List(ctx, &list, client.InNamespace(s.app.Namespace),
		client.MatchingFields{policies.ApplicationIndex: s.app.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the resources of application %s: %w", client.ObjectKeyFromObject(s.app), err)
	}
	s.members = list.Items
	return nil
}

// placeResources gives every resource the application's target.
func (c *Controller) placeResources(ctx context.Context, s *scope) error {
	errs := make([]error, len(s.members))
	workqueue.ParallelizeUntil(ctx, maxConcurrentWrites, len(errs), func(i int) { errs[i] = c.placeResource(ctx, s.app, &s.members[i]) })
	s.errs = append(s.errs, errs...)
	return nil
}

// placeResource sets a resource's target, and the finalizer that keeps the resource
// until its object is deleted from the target. A resource on another target moves. If
// the application has no target, the resource's status says why.
func (c *Controller) placeResource(ctx context.Context, app *v1alpha2.KubernetesApplication, resource *v1alpha1.KubernetesApplicationResource) error {
	switch {
	case resource.DeletionTimestamp != nil:
		return nil
	case app.Spec.TargetRef != nil:
		return c.setTarget(ctx, app, resource)
	case resource.Spec.TargetRef == nil:
		return c.patchUnscheduled(ctx, app, resource)
	}
	return nil
}

func (c *Controller) setTarget(ctx context.Context, app *v1alpha2.KubernetesApplication, resource *v1alpha1.KubernetesApplicationResource) error {
	target := app.Spec.TargetRef.Name
	if copied := *resource; !targetselection.SetTarget(&copied, target) {
		return nil
	}
	cached := *resource
	*resource = *resource.DeepCopy()
	targetselection.SetTarget(resource, target)
	controllerutil.AddFinalizer(resource, v1alpha1.PropagationFinalizer)
	written, err := c.writer.Patch(ctx, &cached, resource, "placing")
	if err != nil || !written {
		return err
	}
	if leaving := resource.Spec.LeavingTargetRef; leaving != nil {
		events.Emit(c.recorder, events.Regarding(resource), "Move", events.Event{Reason: v1alpha1.EventMoving, Note: fmt.Sprintf(
			"moves from target %s to target %s, and runs on both until all of application %s is ready there",
			leaving.Name, target, app.Name)})
	}
	return nil
}

// patchUnscheduled copies the reason why the application has no target to a resource.
func (c *Controller) patchUnscheduled(ctx context.Context, app *v1alpha2.KubernetesApplication, resource *v1alpha1.KubernetesApplicationResource) error {
	scheduled := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.Scheduled)
	if scheduled == nil || scheduled.Reason == v1alpha1.ReasonProgressing {
		return nil // a decision follows; the application has the number of evaluated resources
	}
	cached := *resource
	*resource = *resource.DeepCopy()
	condition := *scheduled
	condition.ObservedGeneration = resource.Generation
	meta.SetStatusCondition(&resource.Status.Conditions, condition)
	for _, kind := range []string{v1alpha1.Synced, v1alpha1.Ready} {
		meta.SetStatusCondition(&resource.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotScheduled,
			Message: "waiting for a target", ObservedGeneration: resource.Generation,
		})
	}
	resource.Status.State = v1alpha1.StatePending
	_, err := c.writer.PatchStatus(ctx, &cached, resource, reconciler.Emit(c.recorder, events.Regarding(resource), "Schedule"))
	return err
}

// deleteEmptyApplication deletes an application that Portico made, when its last
// resource is gone. Intake makes it again when an object needs it.
func (c *Controller) deleteEmptyApplication(ctx context.Context, s *scope) error {
	if len(s.members) > 0 || s.app.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor || len(s.app.Spec.ResourceTemplates) > 0 {
		return nil
	}
	if err := errors.Join(s.errs...); err != nil {
		return err
	}
	if s.app.Status.DesiredResources == 0 { // a new application gets its first resource in a moment
		return reconciler.ErrDone
	}
	if err := c.writer.Delete(ctx, s.app, "deleting the empty application"); err != nil {
		return err
	}
	return reconciler.ErrDone
}

// summarize sets the status from the members, and ends the reconcile with the errors of
// single resources.
func (c *Controller) summarize(_ context.Context, s *scope) error {
	setStatus(s.app, s.members, s.problems)
	if err := errors.Join(s.errs...); err != nil {
		return err
	}
	for _, problem := range s.problems {
		if problem.reason == v1alpha1.ReasonOwnershipConflict {
			return reconciler.RequeueAfter(wait.Jitter(nameConflictRequeueAfter, 0.5))
		}
	}
	if delay := c.statuses.Delay(client.ObjectKeyFromObject(s.app)); delay > 0 && s.before.Status.DesiredResources > 0 && !equality.Semantic.DeepEqual(s.before.Status, s.app.Status) {
		s.holdStatus = true
		return reconciler.RequeueAfter(delay)
	}
	return nil
}

// patchStatus writes the status at the end of a reconcile. Events of an application
// without templates are emitted on its native objects.
func (c *Controller) patchStatus(ctx context.Context, s *scope) error {
	if s.holdStatus {
		return nil
	}
	var emit []reconciler.Option
	if len(s.app.Spec.ResourceTemplates) > 0 {
		emit = append(emit, reconciler.Emit(c.recorder, s.app, "Apply"))
	}
	written, err := c.writer.PatchStatus(ctx, s.before, s.app, emit...)
	if written {
		c.statuses.Wrote(client.ObjectKeyFromObject(s.app))
	}
	return err
}
