// Package claim makes a KubernetesTarget for each bound KubernetesCluster claim, in
// the namespace of the claim (S1).
package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	computev1alpha1 "github.com/portico-io/portico/api/compute/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/dynamicwatch"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies/connectionsecret"
	"github.com/portico-io/portico/policies/decisions"
)

// +kubebuilder:rbac:groups=compute.crossplane.io,resources=kubernetesclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch

// kindRetryInterval is the delay before the API server is asked again for the kind of
// claims, when the definition of the kind exists and the kind is not served yet.
const kindRetryInterval = 2 * time.Second

// kindRequest is the request to watch the kind of claims. A claim has a namespace, so
// no claim has this key.
var kindRequest = reconcile.Request{NamespacedName: types.NamespacedName{Name: "kubernetesclusters.compute.crossplane.io"}}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Controller makes the targets of claims.
type Controller struct {
	hub       client.Client
	writer    reconciler.Writer
	live      client.Reader // with the managed fields, which the cache leaves out
	dynamic   dynamic.Interface
	mapper    meta.RESTMapper
	recorder  events.Recorder
	watches   *dynamicwatch.Watches
	changed   chan event.TypedGenericEvent[reconcile.Request]
	ctx       context.Context //nolint:containedctx // of the watch of claims
	evaluator *decisions.Evaluator
	memory    memory
}

// SetupWithManager adds the controller. The watch of claims ends with ctx. The
// evaluator decides by the publish policies before a target is made or changed.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, evaluator *decisions.Evaluator) error {
	clients, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("preparing access to claims: %w", err)
	}
	c := &Controller{
		hub: mgr.GetClient(), live: mgr.GetAPIReader(), dynamic: clients, mapper: mgr.GetRESTMapper(),
		writer:    reconciler.Writer{Client: mgr.GetClient(), Owner: v1alpha1.ClaimManager},
		recorder:  mgr.GetEventRecorder("portico"),
		changed:   make(chan event.TypedGenericEvent[reconcile.Request], 1024),
		ctx:       ctx,
		evaluator: evaluator,
		memory:    newMemory(),
	}
	c.watches = dynamicwatch.New(ctx, dynamicwatch.Options{
		Client: clients,
		Trim:   connectionsecret.TrimCluster,
		Changed: func(_ schema.GroupVersionResource, claim types.NamespacedName) {
			c.enqueue(reconcile.Request{NamespacedName: claim})
		},
		Stopped: func(schema.GroupVersionResource) { c.enqueue(kindRequest) },
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("claim").
		Watches(definitionMetadata(), handler.EnqueueRequestsFromMapFunc(requestsOfDefinition), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.KubernetesTarget{}, handler.EnqueueRequestsFromMapFunc(claimOfTarget), builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.claimsOfSecret)).
		// A denied target may be allowed when the policies change, or the namespace.
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(c.deniedInNamespace), builder.WithPredicates(
			predicate.Or(predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(policycheck.OnChange(evaluator, func(context.Context) []reconcile.Request { return c.memory.deniedIn("") })).
		WatchesRawSource(source.Channel(c.changed, handler.TypedFuncs[reconcile.Request, reconcile.Request]{
			GenericFunc: func(_ context.Context, e event.TypedGenericEvent[reconcile.Request], q queue) { q.Add(e.Object) },
		})).
		Complete(reconciler.RetryOnConflict(c))
}

func (c *Controller) enqueue(request reconcile.Request) {
	select {
	case c.changed <- event.TypedGenericEvent[reconcile.Request]{Object: request}:
	case <-c.ctx.Done():
	}
}

func definitionMetadata() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return out
}

func requestsOfDefinition(_ context.Context, definition client.Object) []reconcile.Request {
	if definition.GetName() != kindRequest.Name {
		return nil
	}
	return []reconcile.Request{kindRequest}
}

// claimOfTarget returns the claim with the name of a target.
func claimOfTarget(_ context.Context, target client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(target)}}
}

// claimsOfSecret returns the claim that controls a Secret, and the claims that the
// Secret blocks.
func (c *Controller) claimsOfSecret(_ context.Context, secret client.Object) []reconcile.Request {
	out := c.memory.claimsOf(client.ObjectKeyFromObject(secret))
	owner := metav1.GetControllerOf(secret)
	if owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == computev1alpha1.KubernetesClusterKind {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: owner.Name}})
	}
	return out
}

func (c *Controller) deniedInNamespace(_ context.Context, namespace client.Object) []reconcile.Request {
	return c.memory.deniedIn(namespace.GetName())
}

// reconcileKind starts the watch of claims if their kind is served.
func (c *Controller) reconcileKind(ctx context.Context) (reconcile.Result, error) {
	mapping, err := c.kindMapping()
	if err != nil {
		return reconcile.Result{}, err
	}
	if mapping == nil {
		return c.waitForKind(ctx)
	}
	err = c.watches.Watch(ctx, kindRequest.NamespacedName, mapping.Resource)
	var refused *dynamicwatch.WatchError
	if errors.As(err, &refused) && apierrors.IsNotFound(err) {
		return c.waitForKind(ctx)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("watching claims: %w", err)
	}
	return reconcile.Result{}, nil
}

// kindMapping returns the resource of claims; nil while the hub does not serve it.
func (c *Controller) kindMapping() (*meta.RESTMapping, error) {
	mapping, err := c.mapper.RESTMapping(computev1alpha1.KubernetesClusterKind)
	if meta.IsNoMatchError(err) || err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, nil //nolint:nilnil // no mapping is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("looking up the kind of claims: %w", err)
	}
	return mapping, nil
}

// waitForKind stops the watch. It requeues the request while the definition of the
// kind exists; otherwise the watch of definitions does.
func (c *Controller) waitForKind(ctx context.Context) (reconcile.Result, error) {
	c.watches.Release(kindRequest.NamespacedName)
	exists, err := reconciler.Find(ctx, c.hub, kindRequest.NamespacedName, definitionMetadata())
	if err != nil || !exists {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: kindRetryInterval}, nil
}
