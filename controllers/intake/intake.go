// Package intake makes a KubernetesApplicationResource of each native object that is
// labelled remote, and returns objects without the label to the hub.
package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/targetselection"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;create;patch;delete

// maxConcurrentReconciles bounds the parallel reconciles of one kind.
const maxConcurrentReconciles = 8

// rolloutRequeueAfter is the delay after which intake reads objects of the hub again
// that no watch covers: those of an object without the label, and its Pods.
const rolloutRequeueAfter = time.Second

// Controller takes in the objects of one kind.
type Controller struct {
	hub       client.Client
	live      client.Reader
	writer    reconciler.Writer
	kind      kinds.Kind
	evaluator *decisions.Evaluator
	load      *targetselection.Load
	recorder  events.Recorder
	// replicaSets and pods are those of objects that move.
	replicaSets replicaSets
	pods        pods
	memory
}

// memory is the state that a process may lose at any moment.
type memory struct {
	// denials lists the objects that policies denied. After a restart every object is
	// evaluated again.
	denials denials
	// returnBackoff delays the reconciles of objects that return to the hub. After a
	// restart the delays start again.
	returnBackoff backoff
	// orphaning lists the owners that are deleted with --cascade=orphan. An owner that
	// still has the finalizer is seen again after a restart.
	orphaning reconciler.OrphaningOwners
	// created has the UIDs of the objects whose resource was created a moment ago, so that
	// the cache may not have it yet. After a restart the cache has it.
	created created
}

// backoff grows while an object that returns to the hub is not ready there.
type backoff = workqueue.TypedRateLimiter[types.NamespacedName]

func newBackoff() backoff {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](rolloutRequeueAfter, 20*time.Second)
}

func newController(hub client.Client, live client.Reader, kind kinds.Kind, recorder events.Recorder) *Controller {
	writer := reconciler.Writer{Client: hub, Owner: v1alpha1.IntakeManager}
	return &Controller{
		hub: hub, live: live, writer: writer,
		replicaSets: replicaSets{hub: hub, live: live, writer: writer}, pods: pods{live: live, writer: writer},
		kind: kind, recorder: recorder, memory: memory{returnBackoff: newBackoff(), created: newCreated()},
	}
}

// SetupWithManager adds a controller for every kind. The evaluator evaluates the
// policies for objects, and load has the number of resources on each target.
func SetupWithManager(mgr ctrl.Manager, evaluator *decisions.Evaluator, load *targetselection.Load) error {
	for _, kind := range kinds.All {
		if err := SetupKind(mgr, kind, evaluator, load); err != nil {
			return err
		}
	}
	return nil
}

// SetupKind adds a controller for one kind.
func SetupKind(mgr ctrl.Manager, kind kinds.Kind, evaluator *decisions.Evaluator, load *targetselection.Load) error {
	c := newController(mgr.GetClient(), mgr.GetAPIReader(), kind, mgr.GetEventRecorder("portico"))
	c.evaluator, c.load = evaluator, load
	if err := c.setup(mgr); err != nil {
		return fmt.Errorf("adding the intake controller of %s: %w", kind.Resource(), err)
	}
	return nil
}

func (c *Controller) setup(mgr ctrl.Manager) error {
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), kinds.New(c.kind), handler.OnlyControllerOwner())
	b := ctrl.NewControllerManagedBy(mgr).
		Named("intake-"+c.kind.Resource()).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrentReconciles}).
		Watches(&v1alpha1.KubernetesApplicationResource{}, owner, builder.WithPredicates(resourceChanged())).
		Watches(&v1alpha2.KubernetesApplication{}, handler.EnqueueRequestsFromMapFunc(c.membersOfApplication), builder.WithPredicates(reconciler.Deleted())).
		WatchesRawSource(policycheck.OnChange(c.evaluator, c.denials.requests))
	if kinds.HasContent(c.kind.GroupVersionKind()) {
		b = b.For(kinds.CachedObject(c.kind), builder.WithPredicates(remoteContentChanged())).Watches(kinds.CachedObject(c.kind), c.orphaning.Handler())
		return b.Complete(reconciler.RetryOnConflict(c))
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), kinds.New(c.kind), serviceAccountIndex, indexServiceAccount); err != nil {
		return fmt.Errorf("adding index %s: %w", serviceAccountIndex, err)
	}
	inNamespace := func(ctx context.Context, namespace client.Object) []reconcile.Request {
		return c.listNatives(ctx, client.InNamespace(namespace.GetName()))
	}
	withAccount := func(ctx context.Context, account client.Object) []reconcile.Request {
		return c.listNatives(ctx, client.InNamespace(account.GetNamespace()), client.MatchingFields{serviceAccountIndex: account.GetName()})
	}
	b = b.For(kinds.New(c.kind), builder.WithPredicates(reconciler.Remote(), intentChanged())).
		Watches(namespaceMetadata(), handler.EnqueueRequestsFromMapFunc(inNamespace), builder.WithPredicates(withRBACChanged())).
		Watches(kinds.New(c.kind), c.orphaning.Handler()).
		Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(c.dependentsOf), builder.WithPredicates(reconciler.TakenChanged())).
		Watches(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(withAccount), builder.WithPredicates(pullSecretsChanged()))
	for _, content := range []kinds.Kind{kinds.Secret{}, kinds.ConfigMap{}} {
		b = b.Watches(kinds.CachedObject(content), handler.EnqueueRequestsFromMapFunc(c.dependentsOf), builder.WithPredicates(scheduleLabelChanged()))
	}
	return b.Complete(reconciler.RetryOnConflict(c))
}

// scope is the state of one reconcile.
type scope struct {
	native    *unstructured.Unstructured
	namespace *metav1.PartialObjectMetadata
	member    policies.Membership
	app       *v1alpha2.KubernetesApplication
	desired   *v1alpha1.KubernetesApplicationResource
	resource  *v1alpha1.KubernetesApplicationResource
}

// LogValues implements reconciler.LogValuer.
func (s *scope) LogValues() []any {
	namespace := s.native.GetNamespace()
	out := []any{"kind", s.native.GetKind(), "object", klog.KObj(s.native), "resource", klog.KRef(namespace, resourceKey(s.native).Name)}
	if s.member.Application != "" {
		out = append(out, "application", klog.KRef(namespace, s.member.Application))
	}
	if s.app != nil && s.app.Spec.TargetRef != nil {
		out = append(out, "target", klog.KRef(namespace, s.app.Spec.TargetRef.Name))
	}
	return out
}

// resourceKey returns the key of a native object's resource.
func resourceKey(native client.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: native.GetNamespace(), Name: kinds.ResourceNameOf(native.GetObjectKind().GroupVersionKind().GroupKind(), native.GetName())}
}

// Reconcile takes in one object, or returns it to the hub. The cache holds only
// labelled objects: an object that is not in the cache was deleted, or lost its label.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if err := c.removeOwner(ctx, req.NamespacedName); err != nil {
		return reconcile.Result{}, err
	}
	native, err := c.getNative(ctx, req.NamespacedName)
	if err != nil {
		c.denials.remove(req)
		c.returnBackoff.Forget(req.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if native.GetDeletionTimestamp() != nil || kinds.IsRemote(native) {
		c.returnBackoff.Forget(req.NamespacedName)
	}
	switch {
	case native.GetDeletionTimestamp() != nil:
		return reconcile.Result{}, nil // garbage collection deletes the resource
	case !kinds.IsRemote(native), !kinds.IsSent(c.kind, native):
		return c.returnToHub(ctx, native)
	}
	return c.ensureRemote(ctx, native)
}

// getNative reads an object. The cache only has the metadata of Secrets and ConfigMaps,
// and intake does not need their content.
func (c *Controller) getNative(ctx context.Context, key client.ObjectKey) (*unstructured.Unstructured, error) {
	native := kinds.New(c.kind)
	if kinds.HasContent(c.kind.GroupVersionKind()) {
		err := c.live.Get(ctx, key, native)
		kinds.RemoveContent(native)
		return native, err
	}
	err := c.hub.Get(ctx, key, native)
	if apierrors.IsNotFound(err) {
		err = c.live.Get(ctx, key, native)
	}
	return native, err
}

// ensureRemote ensures the application and the resource of an object, and stops the Pods
// of an object that still runs on the hub.
func (c *Controller) ensureRemote(ctx context.Context, native *unstructured.Unstructured) (reconcile.Result, error) {
	return reconciler.Run(ctx, &scope{native: native}, []reconciler.Step[*scope]{
		{Name: "check hold", Run: c.checkHold},
		{Name: "find application", Run: c.findApplication},
		{Name: "check policies", Run: c.checkPolicies},
		{Name: "ensure application", Run: c.joinApplication},
		{Name: "project", Run: c.project},
		{Name: "ensure resource", Run: c.ensureResource},
		{Name: "move to target", Run: c.moveToTarget},
	}, nil)
}

// findApplication finds the application of the object.
func (c *Controller) findApplication(ctx context.Context, s *scope) error {
	s.namespace = namespaceMetadata()
	if err := c.hub.Get(ctx, client.ObjectKey{Name: s.native.GetNamespace()}, s.namespace); err != nil {
		return fmt.Errorf("reading namespace %s: %w", s.native.GetNamespace(), err)
	}
	if reason := policies.HubOnlyReason(s.native); reason != "" { // admission may have been unavailable
		return c.rejectNative(ctx, s.native, fmt.Errorf("%s %s %s", s.native.GetKind(), s.native.GetName(), reason))
	}
	member, malformed := policies.MembershipOf(s.native, s.namespace)
	if len(malformed) > 0 {
		return c.rejectNative(ctx, s.native, malformed.ToAggregate())
	}
	member, err := c.currentMembership(ctx, s.native, member)
	s.member = member
	return err
}

// joinApplication ensures the application of the object, or keeps the object out of an
// application with another selector or other tolerations.
func (c *Controller) joinApplication(ctx context.Context, s *scope) error {
	app, err := c.ensureApplication(ctx, s.native, s.member)
	if errors.Is(err, errTargetConflict) {
		return c.rejectMember(ctx, s.native, err)
	}
	s.app = app
	return err
}

// project makes the desired resource of the object.
func (c *Controller) project(ctx context.Context, s *scope) error {
	current := &v1alpha1.KubernetesApplicationResource{}
	exists, err := reconciler.Find(ctx, c.hub, resourceKey(s.native), current)
	if err != nil {
		return err
	}
	if !exists {
		current = nil
	}
	found, err := c.findDependencies(ctx, s, current)
	if err != nil {
		return err
	}
	s.desired, err = resourceFor(c.kind, s.native, s.member.Application, s.app.Spec.TargetRef, found, current)
	if err != nil {
		return c.rejectNative(ctx, s.native, err)
	}
	return nil
}

// rejectNative emits the reason why an object cannot be sent. A retry would not help.
func (c *Controller) rejectNative(ctx context.Context, native *unstructured.Unstructured, err error) error {
	ctrl.LoggerFrom(ctx).V(2).Info("Rejected object", "reason", err.Error())
	events.Emit(c.recorder, native, "TakeIn", events.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: err.Error()})
	return reconcile.TerminalError(err)
}

// ensureResource creates or updates the resource of the object.
func (c *Controller) ensureResource(ctx context.Context, s *scope) error {
	current := &v1alpha1.KubernetesApplicationResource{}
	err := c.hub.Get(ctx, client.ObjectKeyFromObject(s.desired), current)
	if apierrors.IsNotFound(err) {
		s.resource = s.desired
		return c.created.createOnce(ctx, c.writer, s.native.GetUID(), s.desired)
	}
	if err != nil {
		return fmt.Errorf("reading resource %s: %w", client.ObjectKeyFromObject(s.desired), err)
	}
	if current.DeletionTimestamp != nil || !metav1.IsControlledBy(current, s.native) {
		return c.waitForName(ctx, s.native, current)
	}
	s.resource = current
	before := current.DeepCopy()
	updateResource(current, s.desired)
	return c.created.patchOnce(ctx, c.writer, s.native.GetUID(), before, current)
}

// waitForName waits until a resource with the same name is gone: that of another owner,
// or an older one.
func (c *Controller) waitForName(ctx context.Context, native *unstructured.Unstructured, other *v1alpha1.KubernetesApplicationResource) error {
	ctrl.LoggerFrom(ctx).V(2).Info("Skipped object", "reason", "the name of its resource is taken")
	if other.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor {
		events.Emit(c.recorder, native, "TakeIn", events.Event{Warning: true, Reason: v1alpha1.EventNameTaken, Note: fmt.Sprintf(
			"KubernetesApplicationResource %s exists and belongs to another object; rename or delete one of them", other.Name)})
	}
	return reconciler.RequeueAfter(rolloutRequeueAfter)
}

// listResources lists the resources of an application. The cache owns them.
func (c *Controller) listResources(ctx context.Context, namespace, application string) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{policies.ApplicationIndex: application}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the resources of application %s: %w", application, err)
	}
	return list.Items, nil
}
