// Package propagation applies the object of each KubernetesApplicationResource on its
// target, and reports the state of that object in the status of the resource.
package propagation

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/enqueue"
	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/propagation/targetqueue"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options of the controller.
type Options struct {
	// HubID is the identity of this hub. It marks the hub's objects on the targets.
	HubID string
	// AllowDefaults apply to targets without spec.allow.
	AllowDefaults policies.AllowDefaults
	// Workers is the number of workers for each target. Default 8.
	Workers int
	// Resync is the interval, jittered, at which each resource is reconciled without an
	// event. Default 10 minutes.
	Resync time.Duration
}

// base is shared by all parts of the controller.
type base struct {
	options  Options
	hub      client.Client // reads from the cache
	live     client.Reader // reads from the API server
	clusters *clusters.Clusters
	recorder events.Recorder
	writer   reconciler.Writer
	memory   *memory.Memory
}

// Controller propagates resources to targets. Its parts are the groups of steps.
type Controller struct {
	*base
	enqueuer  *enqueue.Enqueuer
	connector connector
	sources   sources
	observer  observer
	copies    copies
	applier   applier
	remover   remover
}

// New returns the controller. It runs once started, by the manager's leader.
func New(mgr manager.Manager, targets *clusters.Clusters, o Options) *Controller {
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.Resync == 0 {
		o.Resync = 10 * time.Minute
	}
	c := newController(base{
		options: o, clusters: targets,
		hub: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("portico"),
	}, mgr.GetCache())
	c.enqueuer.Queues = &targetqueue.Queues{
		Workers: o.Workers,
		RateLimiter: func() workqueue.TypedRateLimiter[targetqueue.Request] {
			return workqueue.NewTypedItemExponentialFailureRateLimiter[targetqueue.Request](250*time.Millisecond, time.Minute)
		},
		Published: func(target types.NamespacedName) bool {
			_, err := targets.Get(target)
			return !errors.Is(err, clusters.ErrUnknown)
		},
		NewReconciler: func(target types.NamespacedName) reconcile.Reconciler {
			return reconciler.RetryOnConflict(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				return c.reconcile(ctx, target, req)
			}))
		},
	}
	targets.AddListener(c.enqueuer)
	return c
}

// newController connects the parts of the controller. Its queues are still to be set.
func newController(b base, c cache.Cache) *Controller {
	b.memory = memory.New()
	b.writer = reconciler.Writer{Client: b.hub, Owner: v1alpha1.PropagationManager}
	shared := &b
	connector := connector{base: shared, cache: c}
	observer := observer{base: shared, metrics: memory.NewMetrics()}
	sources := sources{base: shared}
	copies := copies{base: shared, observer: observer, sources: sources}
	return &Controller{
		base: shared, connector: connector, observer: observer, sources: sources, copies: copies,
		applier:  applier{base: shared, connector: connector, observer: observer, sources: sources},
		remover:  remover{base: shared, cache: c, connector: connector, copies: copies},
		enqueuer: &enqueue.Enqueuer{Cache: c, Clusters: b.clusters, Memory: b.memory, Metrics: observer.metrics},
	}
}

// Start watches resources until ctx ends.
func (c *Controller) Start(ctx context.Context) error {
	for _, watch := range []func(context.Context) error{
		c.enqueuer.WatchResources, c.enqueuer.WatchTargets, c.enqueuer.WatchSources, c.enqueuer.WatchNamespaces,
	} {
		if err := watch(ctx); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
	c.enqueuer.Queues.Start(ctx) // now progress counts all members of each application
	c.observer.metrics.Started.Store(true)
	<-ctx.Done()
	return nil
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(to chan<- *prometheus.Desc) { c.observer.metrics.Describe(to) }

// Collect implements prometheus.Collector.
func (c *Controller) Collect(to chan<- prometheus.Metric) { c.observer.metrics.Collect(to) }

// NeedLeaderElection says that only one replica propagates.
func (c *Controller) NeedLeaderElection() bool { return true }

type step = reconciler.Step[*scope.Scope]

// steps returns the steps for the state of a resource.
func (c *Controller) steps(s *scope.Scope) []step {
	switch {
	case s.SkipStatus: // the resource leaves this target
		return []step{
			{Name: "wait for application", Run: c.remover.waitForApplication},
			{Name: "build desired", Run: c.buildDesired},
			{Name: "connect", Run: c.remover.connect},
			{Name: "read object", Run: c.connector.readObject},
			{Name: "remove from old target", Run: c.remover.removeFromOldTarget},
		}
	case isLeft(s.Resource):
		return []step{{Name: "leave object", Run: c.remover.leaveObject}}
	case scope.OrphansObject(s.Resource):
		return []step{
			{Name: "validate", Run: c.validate},
			{Name: "connect", Run: c.remover.connect},
			{Name: "read object", Run: c.connector.readObject},
			{Name: "release object", Run: c.remover.releaseObject},
		}
	case s.Resource.DeletionTimestamp != nil:
		return []step{
			{Name: "validate", Run: c.validate},
			{Name: "connect", Run: c.remover.connect},
			{Name: "read object", Run: c.connector.readObject},
			{Name: "withdraw object", Run: c.remover.withdrawObject},
		}
	}
	return []step{
		{Name: "validate", Run: c.validate},
		{Name: "resolve content", Run: c.sources.resolveContent},
		{Name: "resolve dependencies", Run: c.sources.resolveDependencies},
		{Name: "connect", Run: c.connector.connect},
		{Name: "read object", Run: c.connector.readObject},
		{Name: "check owner", Run: c.checkOwner},
		{Name: "keep finished", Run: c.observer.keepFinished},
		{Name: "share object", Run: c.applier.shareObject},
		{Name: "check allowed", Run: c.applier.checkAllowed},
		{Name: "wait for scale target", Run: c.connector.waitForScaleTarget},
		{Name: "read drift policy", Run: c.applier.readDriftPolicy},
		{Name: "fill content", Run: c.applier.fillContent},
		{Name: "apply copies", Run: c.copies.apply},
		{Name: "apply", Run: c.applier.apply},
		{Name: "record content revision", Run: c.sources.recordContentRevision},
		{Name: "delete excess copies", Run: c.copies.deleteExcess},
		{Name: "mirror status", Run: c.observer.mirrorStatus},
		{Name: "settle dependencies", Run: c.copies.settle},
	}
}

// reconcile runs in the queue of a target. A resource that moves is in the queues of
// both its targets.
func (c *Controller) reconcile(ctx context.Context, target types.NamespacedName, req reconcile.Request) (reconcile.Result, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	err := c.hub.Get(ctx, req.NamespacedName, resource)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || !scope.IsOn(resource, target) {
		c.enqueuer.StopWaitingForKind(target, req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if reconciler.IsOlder(resource.ResourceVersion, c.memory.Writes.Get(resource.UID).StatusVersion) {
		// The cache does not have our last status yet. A status that is computed from
		// the one before would emit the same events twice.
		return reconcile.Result{RequeueAfter: wait.Jitter(reconciler.CacheLag, 1)}, nil
	}
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("application", resource.Labels[v1alpha1.ApplicationLabel]))
	s := &scope.Scope{Target: target, Resource: resource, Before: resource.DeepCopy()}
	s.SkipStatus = !plan.RefersTo(resource.Spec.TargetRef, target) // the queue of the new target writes the status
	ended := reconciler.RunSteps(ctx, s, c.steps(s))
	if errors.Is(ended, clusters.ErrFenced) {
		s.SetFenceConflict()
		ended = reconciler.ErrDone
	}
	s.LogOutcome(ctx)
	if reconciler.IsEnd(ended) {
		s.HoldStatusFor = c.holdStatusFor(s)
	}
	if err := c.finish(ctx, s); err != nil {
		if reconciler.IsEnd(ended) {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, errors.Join(ended, err)
	}
	result, err := c.result(ended, s.Resource)
	if s.HoldStatusFor > 0 && (result.RequeueAfter == 0 || s.HoldStatusFor < result.RequeueAfter) {
		result.RequeueAfter = s.HoldStatusFor
	}
	return result, err
}

// deletionResync is the interval, jittered, at which a resource that is being deleted is
// reconciled without an event: an event that is lost must not keep its namespace.
const deletionResync = 30 * time.Second

// result returns the result of a reconcile, with the interval until the next one.
func (c *Controller) result(ended error, resource *v1alpha1.KubernetesApplicationResource) (reconcile.Result, error) {
	if ended == nil {
		ended = reconciler.RequeueAfter(c.options.Resync)
	}
	result, err := reconciler.Result(ended)
	if err == nil && result.RequeueAfter == 0 && waitsForDeletion(resource) {
		result.RequeueAfter = deletionResync
	}
	result.RequeueAfter = jitter(result.RequeueAfter)
	return result, err
}

// waitsForDeletion tells whether a resource is being deleted, and its object may still be
// on a target.
func waitsForDeletion(resource *v1alpha1.KubernetesApplicationResource) bool {
	return resource.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(resource, v1alpha1.PropagationFinalizer)
}

// progressInterval is the time between two statuses that differ only in the progress of a
// rollout, and the time from the creation of a resource until its status says that the
// object waits for its dependencies. The status of an object that becomes ready, or fails,
// is written at once.
const progressInterval = time.Second

// holdStatusFor returns the delay until the status is written; 0 for now.
func (c *Controller) holdStatusFor(s *scope.Scope) time.Duration {
	switch {
	case s.SkipStatus:
		return 0
	case plan.IsStarting(&s.Before.Status, &s.Resource.Status):
		return min(progressInterval, max(0, progressInterval-time.Since(s.Resource.CreationTimestamp.Time)))
	case !plan.IsProgress(&s.Before.Status, &s.Resource.Status):
		return 0
	}
	return max(0, progressInterval-time.Since(c.memory.Writes.Get(s.Resource.UID).StatusAt))
}

// jitter spreads the requests of many resources; 0 remains 0.
func jitter(delay time.Duration) time.Duration {
	if delay == 0 {
		return 0
	}
	return wait.Jitter(delay, 0.5)
}

// finish writes the status, and emits the events after that.
func (c *Controller) finish(ctx context.Context, s *scope.Scope) error {
	if !s.SkipStatus && s.HoldStatusFor == 0 {
		s.ClearObserved()
		s.TruncateStatus()
		if err := c.patchStatus(ctx, s); err != nil {
			return err
		}
	}
	about := events.Regarding(s.Resource)
	events.Emit(c.recorder, about, "Propagate", s.Events...)
	if about != client.Object(s.Resource) && s.Resource.DeletionTimestamp != nil {
		events.Emit(c.recorder, s.Resource, "Propagate", s.Events...) // the native object may not exist any more
	}
	return nil
}

func (c *Controller) patchStatus(ctx context.Context, s *scope.Scope) error {
	// No other writer sets this status, so the patch needs no lock.
	wrote, err := c.writer.PatchStatus(ctx, s.Before, s.Resource, reconciler.Unlocked())
	if err != nil || !wrote {
		return err
	}
	if !plan.RefersTo(s.Resource.Spec.TargetRef, s.Target) {
		c.enqueuer.Enqueue(s.Resource, false) // the resource was moved in the meantime, and the status is of the old target
	}
	var changes []events.Event
	c.memory.Writes.Update(s.Resource.UID, func(w *memory.LastWrite) {
		w.StatusVersion, w.StatusAt = s.Resource.ResourceVersion, time.Now()
		changes, w.Failed = events.OfResource(s.Before.Status.Conditions, s.Resource.Status.Conditions, s.Resource.Labels[v1alpha1.ApplicationLabel], w.Failed)
	})
	s.Events = append(changes, s.Events...)
	return nil
}

// ensureFinalizer adds the finalizer that keeps a deleted resource until its object is
// gone from the target. A resource that was written by hand, or restored from a backup,
// may lack it. A resource that was deleted meanwhile ends the reconcile: nothing would
// delete its object again.
func (c *base) ensureFinalizer(ctx context.Context, s *scope.Scope) error {
	if s.State == plan.Foreign || s.State == plan.NativeObject || controllerutil.ContainsFinalizer(s.Resource, v1alpha1.PropagationFinalizer) {
		return nil
	}
	before := s.Resource.DeepCopy()
	controllerutil.AddFinalizer(s.Resource, v1alpha1.PropagationFinalizer)
	wrote, err := c.writer.Patch(ctx, before, s.Resource, "adding the finalizer of")
	if err != nil {
		return err
	}
	if !wrote {
		s.SkipStatus = true
		return reconciler.ErrDone
	}
	s.Before = scope.WithStatusOf(s.Resource, s.Before)
	return nil
}
