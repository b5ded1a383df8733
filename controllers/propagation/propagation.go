// Package propagation makes what a KubernetesApplicationResource asks for true
// on its target, and tells in its status what became of it.
package propagation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/retry"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options of the controller.
type Options struct {
	// HubID marks this hub's objects on the targets.
	HubID string
	// Frontier is what targets let in by default.
	Frontier policies.Frontier
	// Workers for each target. Default 8.
	Workers int
	// Resync is how often a resource is looked at without a reason, as a
	// safety net; jittered. Default 10 minutes.
	Resync time.Duration
}

// Controller propagates.
type Controller struct {
	options  Options
	hub      client.Client
	live     client.Reader
	cache    cache.Cache
	clusters *clusters.Clusters
	recorder events.EventRecorder
	lanes    *lanes
	memory   memory
	sources  sources
	gauges   gauges
}

// TargetIndex finds resources by the names of the targets they are on: theirs,
// and the one they are leaving.
const TargetIndex = "spec.targetRef.name"

// IndexTarget is TargetIndex's function.
func IndexTarget(object client.Object) []string {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	return policies.TargetsOf(resource)
}

// New returns the controller. It runs once started, by the manager's leader.
func New(mgr manager.Manager, targets *clusters.Clusters, o Options) *Controller {
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.Resync == 0 {
		o.Resync = 10 * time.Minute
	}
	c := &Controller{
		options: o, clusters: targets,
		hub: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(), recorder: mgr.GetEventRecorder("portico"),
	}
	c.gauges = newGauges()
	c.memory.last = map[types.UID]applied{}
	c.lanes = &lanes{
		workers: o.Workers,
		limiter: func() workqueue.TypedRateLimiter[reconcile.Request] {
			return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](250*time.Millisecond, time.Minute)
		},
		travel: func(target types.NamespacedName) reconcile.Reconciler {
			return retry.Quietly(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				return c.reconcile(ctx, target, req)
			}))
		},
	}
	targets.Listen(c)
	return c
}

// Start watches resources until ctx ends.
func (c *Controller) Start(ctx context.Context) error {
	c.lanes.start(ctx)
	informer, err := c.cache.GetInformer(ctx, &v1alpha1.KubernetesApplicationResource{})
	if err != nil {
		return fmt.Errorf("watching resources: %w", err)
	}
	queue := func(object any) {
		if resource, ok := object.(*v1alpha1.KubernetesApplicationResource); ok {
			c.enqueue(resource, false)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: queue,
		UpdateFunc: func(before, after any) {
			if changed(before, after) {
				queue(after)
			}
			c.tellCompanions(before, after)
			c.tellFollowers(before, after)
			c.tellAwaiting(before, after)
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if resource, ok := object.(*v1alpha1.KubernetesApplicationResource); ok {
				c.memory.forget(resource.UID)
				for _, name := range policies.TargetsOf(resource) {
					c.forgoKind(types.NamespacedName{Namespace: resource.Namespace, Name: name}, client.ObjectKeyFromObject(resource))
				}
				c.tellCompanions(nil, resource)
				c.tellFollowers(nil, resource)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching resources: %w", err)
	}
	if err := c.watchAllowances(ctx); err != nil {
		return err
	}
	if err := c.watchSources(ctx); err != nil {
		return err
	}
	if err := c.watchStances(ctx); err != nil {
		return err
	}
	c.gauges.began.Store(true)
	<-ctx.Done()
	return nil
}

// NeedLeaderElection says that only one replica propagates.
func (c *Controller) NeedLeaderElection() bool { return true }

// changed tells an update that asks for something from one that only reports.
func changed(before, after any) bool {
	was, ok := before.(*v1alpha1.KubernetesApplicationResource)
	is, ok2 := after.(*v1alpha1.KubernetesApplicationResource)
	return !ok || !ok2 || was.Generation != is.Generation ||
		kinds.HubGeneration(was) != kinds.HubGeneration(is) ||
		was.Annotations[v1alpha1.MoveFromAnnotation] != is.Annotations[v1alpha1.MoveFromAnnotation] ||
		forced(was) != forced(is) ||
		differIn(was, is, v1alpha1.RollAnnotation, v1alpha1.AdoptAnnotation, v1alpha1.DeletionAnnotation, v1alpha1.ReleaseAnnotation, v1alpha1.DriftAnnotation) ||
		!equality.Semantic.DeepEqual(was.OwnerReferences, is.OwnerReferences) ||
		!equality.Semantic.DeepEqual(was.Finalizers, is.Finalizers) ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil)
}

// differIn tells whether one of some annotations differs.
func differIn(was, is metav1.Object, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return was.GetAnnotations()[key] != is.GetAnnotations()[key] })
}

// TargetChanged implements clusters.Listener: everything on the target is
// looked at again, without the delay earlier failures had earned it.
func (c *Controller) TargetChanged(target types.NamespacedName) {
	go func() {
		var list v1alpha1.KubernetesApplicationResourceList
		on := []client.ListOption{client.InNamespace(target.Namespace), client.MatchingFields{TargetIndex: target.Name}}
		if err := c.cache.List(context.Background(), &list, on...); err != nil {
			return // the cache has stopped
		}
		if _, err := c.clusters.Get(target); err != nil && len(list.Items) == 0 {
			c.lanes.close(target)
			// One may have come between the list and the end of its lane.
			if err := c.cache.List(context.Background(), &list, on...); err != nil {
				return
			}
		}
		for i := range list.Items {
			c.enqueue(&list.Items[i], true)
		}
	}()
}

// ObjectChanged implements clusters.Listener.
func (c *Controller) ObjectChanged(target, resource types.NamespacedName) {
	c.lanes.add(target, resource.Name, false)
	c.tellWhoAwaits(resource)
}

// enqueue queues a resource in the lane of every target it is on.
func (c *Controller) enqueue(resource *v1alpha1.KubernetesApplicationResource, fresh bool) {
	for _, name := range policies.TargetsOf(resource) {
		c.lanes.add(types.NamespacedName{Namespace: resource.Namespace, Name: name}, resource.Name, fresh)
	}
}

// names tells whether a reference is to a target.
func names(ref *v1alpha1.TargetReference, target types.NamespacedName) bool {
	return ref != nil && ref.Name == target.Name
}

// journey is one reconcile of one resource: what its steps find and decide.
type journey struct {
	target     types.NamespacedName
	resource   *v1alpha1.KubernetesApplicationResource
	before     *v1alpha1.KubernetesApplicationResource
	desired    *unstructured.Unstructured
	connection *clusters.Connection
	cached     clusters.Reader
	observed   *unstructured.Unstructured
	standing   standing
	content    *luggage // what is in the object, if that is not in the template
	revision   int64    // of the content
	drift      v1alpha1.DriftPolicy
	luggage    []luggage
	excess     []*unstructured.Unstructured // copies to delete once the object is applied
	story      []narrate.Event
	done       bool // there is no status to write
}

// errWait ends a journey that goes on when something happens elsewhere.
var errWait = errors.New("waiting for the target")

// later ends a journey that goes on after a while, because no event tells when.
type later time.Duration

func (l later) Error() string { return "waiting for " + time.Duration(l).String() }

// nowAndThen is how often, jittered, somebody else's object is asked for: the
// caches hold only what is ours, so no event tells when it goes.
const nowAndThen = 20 * time.Second

// shortly is how long a cache takes to see a write of ours.
const shortly = 20 * time.Millisecond

type step struct {
	name string
	run  func(context.Context, *journey) error
}

func (c *Controller) reconcile(ctx context.Context, target types.NamespacedName, req reconcile.Request) (reconcile.Result, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	err := c.hub.Get(ctx, req.NamespacedName, resource)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if on := policies.TargetsOf(resource); err != nil || !slices.Contains(on, target.Name) {
		c.forgoKind(target, req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if older(resource.ResourceVersion, c.memory.recall(resource.UID).reported) {
		// Our own report is on its way to the cache. Going by the one before
		// would tell the same story twice.
		return reconcile.Result{RequeueAfter: wait.Jitter(shortly, 1)}, nil
	}
	j := &journey{target: target, resource: resource, before: resource.DeepCopy()}
	steps := []step{{"guard", c.guard}, {"weigh", c.weigh}, {"gather", c.gather}, {"connect", c.connect}, {"look", c.look}, {"inherit", c.inherit}, {"permit", c.permit},
		{"stance", c.stance}, {"fill", c.fill}, {"carry", c.carry}, {"apply", c.apply}, {"count", c.count}, {"shed", c.shed}, {"observe", c.observe}}
	switch {
	case !names(resource.Spec.TargetRef, target):
		j.done = true // the status is for the lane of the other target to write
		steps = []step{{"arrived", c.arrived}, {"template", c.template}, {"connect", c.reach}, {"look", c.look}, {"leave", c.leave}}
	case orphaned(resource):
		steps = []step{{"guard", c.guard}, {"connect", c.reach}, {"look", c.look}, {"release", c.release}}
	case resource.DeletionTimestamp != nil:
		steps = []step{{"guard", c.guard}, {"connect", c.reach}, {"look", c.look}, {"withdraw", c.withdraw}}
	}
	err = c.travel(ctx, j, steps)
	var pause later
	switch {
	case errors.Is(err, errWait), errors.Is(err, errNotAllowed):
		return reconcile.Result{}, nil
	case errors.Is(err, errNotArrived):
		return reconcile.Result{RequeueAfter: wait.Jitter(nowAndThen, 0.5)}, nil
	case errors.As(err, &pause):
		return reconcile.Result{RequeueAfter: wait.Jitter(time.Duration(pause), 0.5)}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait.Jitter(c.options.Resync, 0.5)}, nil
}

// travel runs the steps until one ends the journey, and writes the status in
// any case: it is how a refusal reaches a person.
func (c *Controller) travel(ctx context.Context, j *journey, steps []step) error {
	var ended error
	for _, s := range steps {
		if ended = s.run(ctx, j); ended != nil {
			break
		}
	}
	if !j.done {
		j.conceal()
		if err := c.report(ctx, j); err != nil && !errors.Is(ended, errWait) {
			return errors.Join(ended, err)
		} else if err != nil {
			return err
		}
	}
	subject := narrate.Subject(j.resource)
	narrate.Tell(c.recorder, subject, "Propagate", j.story...)
	if subject != client.Object(j.resource) && j.resource.DeletionTimestamp != nil {
		narrate.Tell(c.recorder, j.resource, "Propagate", j.story...) // the native object may be gone
	}
	return ended
}

// report writes the status, when it changed, in one patch.
func (c *Controller) report(ctx context.Context, j *journey) error {
	if equality.Semantic.DeepEqual(j.before.Status, j.resource.Status) {
		return nil
	}
	if err := c.hub.Status().Patch(ctx, j.resource, client.MergeFrom(j.before), client.FieldOwner(v1alpha1.PropagationManager)); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("writing the status of resource %s: %w", client.ObjectKeyFromObject(j.resource), err)
	}
	c.memory.change(j.resource.UID, func(a *applied) { a.reported = j.resource.ResourceVersion })
	if !names(j.resource.Spec.TargetRef, j.target) {
		c.enqueue(j.resource, false) // it moved meanwhile, and the report is of where it was
	}
	j.story = append(narrate.Changes(j.before.Status.Conditions, j.resource.Status.Conditions), j.story...)
	return nil
}

// set sets a condition of the journey's resource.
func (j *journey) set(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&j.resource.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: j.resource.Generation,
	})
}

// orphaned tells a resource whose object shall stay on its target: a front-door
// resource whose native object was deleted with its dependents left behind, or one
// that is being deleted and says so itself.
func orphaned(resource *v1alpha1.KubernetesApplicationResource) bool {
	if deletion, _ := policies.DeletionOf(resource); deletion == v1alpha1.DeletionOrphan && resource.DeletionTimestamp != nil {
		return true
	}
	return ownerless(resource)
}

// ownerless tells a front-door resource that lost its native object, or was restored
// from a backup without it.
func ownerless(resource *v1alpha1.KubernetesApplicationResource) bool {
	return resource.Labels[v1alpha1.FrontDoorLabel] == v1alpha1.FrontDoor && metav1.GetControllerOf(resource) == nil
}

// memory is what this process knows beyond the caches, which lag behind its own
// writes.
type memory struct {
	mu   sync.Mutex
	last map[types.UID]applied
}

// applied is what was last written of one resource.
type applied struct {
	// reported is the version of the resource that holds our last status.
	reported string
	// target is where that was, and digest and resourceVersion are of the object
	// there.
	target          string
	digest          string
	resourceVersion string
	// settled are the differences the target made right after the write, such
	// as a webhook's; writing again would not change them.
	settled string
	// judged is what was found out of what others changed since.
	judged verdict
	// yielded says which fields were left to others.
	yielded string
	// disputed tells the last dispute about fields from the next, and disputedAt
	// is when it was last found not to have ended.
	disputed   string
	disputedAt time.Time
	// reverts counts the changes of others that were changed back, of which the
	// last was at reverted.
	reverts  int
	reverted time.Time
}

// quarrel bounds how often somebody's change is changed back who keeps making
// it: twice at once, then at doubling intervals. Peace is when the longest of
// them has passed.
const (
	quarrelAtOnce = 2
	quarrelFirst  = time.Second
	quarrelMost   = 5 * time.Minute
)

// patience is how long to leave the next change of others alone.
func (a applied) patience(now time.Time) time.Duration {
	if a.reverts < quarrelAtOnce {
		return 0
	}
	interval := quarrelMost
	if doublings := a.reverts - quarrelAtOnce; doublings < 16 {
		interval = min(quarrelMost, quarrelFirst<<doublings)
	}
	return max(0, a.reverted.Add(interval).Sub(now))
}

// revert counts one more.
func (a *applied) revert(now time.Time) {
	if now.Sub(a.reverted) > quarrelMost {
		a.reverts = 0
	}
	a.reverts, a.reverted = a.reverts+1, now
}

func (m *memory) recall(uid types.UID) applied {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[uid]
}

// recallOn recalls what was written on a target.
func (m *memory) recallOn(target types.NamespacedName, uid types.UID) applied {
	last := m.recall(uid)
	if last.target != target.Name {
		return applied{}
	}
	return last
}

func (m *memory) change(uid types.UID, write func(*applied)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.last[uid]
	write(&a)
	m.last[uid] = a
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, uid)
}
