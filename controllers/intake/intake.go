// Package intake turns native objects that are labelled remote into
// KubernetesApplicationResources, and brings home those that no longer are.
package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/consult"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/retry"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;create;patch;delete
// Owner references that block deletion need this where that admission is on.
// +kubebuilder:rbac:groups=apps,resources=deployments/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=services/finalizers;secrets/finalizers;configmaps/finalizers,verbs=update

// workers take in objects at the same time.
const workers = 8

// soon is how long to wait for what another controller is about to do on the
// hub and no watch of ours tells: an unlabelled Deployment's rollout.
const soon = time.Second

// Controller takes in one kind.
type Controller struct {
	hub      client.Client
	live     client.Reader
	kind     kinds.Kind
	asker    *decisions.Asker
	turned   turned
	recorder events.EventRecorder
}

// SetupWithManager adds a controller for every kind. asker asks the policies.
func SetupWithManager(mgr ctrl.Manager, asker *decisions.Asker) error {
	for _, kind := range kinds.All {
		c := &Controller{hub: mgr.GetClient(), live: mgr.GetAPIReader(), kind: kind, asker: asker, recorder: mgr.GetEventRecorder("portico")}
		owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), kinds.New(kind), handler.OnlyControllerOwner())
		b := ctrl.NewControllerManagedBy(mgr).
			Named("intake-"+kind.Resource()).
			WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
			Watches(&v1alpha1.KubernetesApplicationResource{}, owner, builder.WithPredicates(matters())).
			Watches(&v1alpha2.KubernetesApplication{}, handler.EnqueueRequestsFromMapFunc(c.members), builder.WithPredicates(deleted())).
			WatchesRawSource(consult.OnChange(asker, c.turned.away))
		if kinds.HasContent(kind.GroupVersionKind()) {
			b = b.For(kinds.Watched(kind), builder.WithPredicates(announced()))
		} else {
			b = b.For(kinds.New(kind), builder.WithPredicates(intended())).
				Watches(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(c.ofAccount), builder.WithPredicates(pulls()))
			for _, content := range []kinds.Kind{kinds.Secret{}, kinds.ConfigMap{}} {
				b = b.Watches(kinds.Watched(content), handler.EnqueueRequestsFromMapFunc(c.referringTo(content)), builder.WithPredicates(relabelled()))
			}
		}
		if err := b.Complete(retry.Quietly(c)); err != nil {
			return fmt.Errorf("adding the intake controller of %s: %w", kind.Resource(), err)
		}
	}
	return nil
}

// intended passes what a user changed, and not what a controller reports.
func intended() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*unstructured.Unstructured)
		is, ok2 := e.ObjectNew.(*unstructured.Unstructured)
		if !ok || !ok2 {
			return true
		}
		return was.GetGeneration() != is.GetGeneration() ||
			(was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil) ||
			!equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels()) ||
			!equality.Semantic.DeepEqual(was.GetAnnotations(), is.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(was.Object["spec"], is.Object["spec"])
	}}
}

// matters passes the changes of a resource that its native object waits for.
func matters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*v1alpha1.KubernetesApplicationResource)
		is, ok2 := e.ObjectNew.(*v1alpha1.KubernetesApplicationResource)
		return !ok || !ok2 || was.Generation != is.Generation ||
			was.Status.ObservedHubGeneration != is.Status.ObservedHubGeneration ||
			meta.IsStatusConditionTrue(was.Status.Conditions, v1alpha1.Ready) != meta.IsStatusConditionTrue(is.Status.Conditions, v1alpha1.Ready)
	}}
}

func deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// members are the native objects of an application.
func (c *Controller) members(ctx context.Context, app client.Object) []reconcile.Request {
	resources, err := c.membersOf(ctx, app.GetNamespace(), app.GetName())
	if err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range resources {
		owner := metav1.GetControllerOf(&resources[i])
		if owner != nil && owner.Kind == c.kind.GroupVersionKind().Kind {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: app.GetNamespace(), Name: owner.Name}})
		}
	}
	return out
}

// Reconcile takes in one object. The cache holds only labelled objects; one
// that is not there was deleted, or is to come home.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	native, err := c.read(ctx, req.NamespacedName)
	if err != nil {
		c.turned.forget(req)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if native.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil // garbage collection deletes the resource
	}
	if !kinds.IsRemote(native) {
		return c.home(ctx, native)
	}
	return c.take(ctx, native)
}

// read reads an object. Of a Secret or ConfigMap the cache has the metadata
// alone, and what is in it is none of intake's business.
func (c *Controller) read(ctx context.Context, key client.ObjectKey) (*unstructured.Unstructured, error) {
	native := kinds.New(c.kind)
	if kinds.HasContent(c.kind.GroupVersionKind()) {
		err := c.live.Get(ctx, key, native)
		kinds.Strip(native)
		return native, err
	}
	err := c.hub.Get(ctx, key, native)
	if apierrors.IsNotFound(err) {
		err = c.live.Get(ctx, key, native)
	}
	return native, err
}

// take ensures the object's application and resource, and moves a Deployment
// that still runs here.
func (c *Controller) take(ctx context.Context, native *unstructured.Unstructured) (reconcile.Result, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.hub.Get(ctx, client.ObjectKey{Name: native.GetNamespace()}, namespace); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading namespace %s: %w", native.GetNamespace(), err)
	}
	if why := policies.KeepsNative(native); why != "" { // admission was away
		return reconcile.Result{}, c.refuse(native, fmt.Errorf("%s %s %s", native.GetKind(), native.GetName(), why))
	}
	member, malformed := policies.MembershipOf(native, namespace)
	if len(malformed) > 0 {
		return reconcile.Result{}, c.refuse(native, malformed.ToAggregate())
	}
	member, err := c.stays(ctx, native, member)
	if err != nil {
		return reconcile.Result{}, err
	}
	if out, err := c.denied(ctx, native, namespace, member); err != nil || out {
		return reconcile.Result{RequeueAfter: askAgain}, err
	}
	app, err := c.application(ctx, native, member)
	if errors.Is(err, errDisagrees) {
		return c.turnAway(ctx, native, err)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	secrets, err := c.pullSecrets(ctx, native)
	if err != nil {
		return reconcile.Result{}, err
	}
	others, err := c.travellers(ctx, native, namespace, member.Application, secrets)
	if err != nil {
		return reconcile.Result{}, err
	}
	desired, err := ResourceFor(c.kind, native, member.Application, app.Spec.TargetRef, secrets, others)
	if err != nil {
		return reconcile.Result{}, c.refuse(native, err)
	}
	resource, err := c.ensure(ctx, native, desired)
	if errors.Is(err, errTaken) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if c.kind == (kinds.Deployment{}) {
		return c.moveIn(ctx, native, resource)
	}
	return reconcile.Result{}, nil
}

// refuse tells why an object cannot be taken in; trying again would not help.
func (c *Controller) refuse(native *unstructured.Unstructured, err error) error {
	narrate.Tell(c.recorder, native, "TakeIn", narrate.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: err.Error()})
	return reconcile.TerminalError(err)
}

// errTaken says that a resource's name is not free yet.
var errTaken = errors.New("name is taken")

// ensure makes or updates the object's resource.
func (c *Controller) ensure(ctx context.Context, native *unstructured.Unstructured, desired *v1alpha1.KubernetesApplicationResource) (*v1alpha1.KubernetesApplicationResource, error) {
	current := &v1alpha1.KubernetesApplicationResource{}
	err := c.hub.Get(ctx, client.ObjectKeyFromObject(desired), current)
	if apierrors.IsNotFound(err) {
		if err := c.hub.Create(ctx, desired, client.FieldOwner(v1alpha1.IntakeManager)); err != nil {
			return nil, fmt.Errorf("creating resource %s: %w", client.ObjectKeyFromObject(desired), err)
		}
		return desired, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading resource %s: %w", client.ObjectKeyFromObject(desired), err)
	}
	if current.DeletionTimestamp != nil || !metav1.IsControlledBy(current, native) {
		if current.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor {
			narrate.Tell(c.recorder, native, "TakeIn", narrate.Event{Warning: true, Reason: v1alpha1.EventNameTaken, Note: fmt.Sprintf(
				"KubernetesApplicationResource %s exists and is not this object's; rename or delete one of them", current.Name)})
		}
		return nil, errTaken
	}
	before := current.DeepCopy()
	revise(current, desired)
	if equality.Semantic.DeepEqual(before, current) {
		return current, nil
	}
	// Locked, because what differs from an old copy is not what differs.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Patch(ctx, current, patch, client.FieldOwner(v1alpha1.IntakeManager)); err != nil {
		return nil, fmt.Errorf("updating resource %s: %w", client.ObjectKeyFromObject(desired), err)
	}
	return current, nil
}

// membersOf lists the resources of an application.
func (c *Controller) membersOf(ctx context.Context, namespace, application string) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.ApplicationLabel: application}); err != nil {
		return nil, fmt.Errorf("listing the resources of application %s: %w", application, err)
	}
	return list.Items, nil
}
