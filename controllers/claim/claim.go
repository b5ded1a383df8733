// Package claim publishes the clusters that bound KubernetesCluster claims got,
// in the claims' namespaces (S1).
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
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
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/retry"
	"github.com/portico-io/portico/controllers/watches"
	"github.com/portico-io/portico/policies/publication"
)

// +kubebuilder:rbac:groups=compute.crossplane.io,resources=kubernetesclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch

// soon is when to look again for a kind whose definition is there, and which is
// not served yet.
const soon = 2 * time.Second

// theKind is the request to watch the claims' kind, which may come and go: a
// claim has a namespace.
var theKind = reconcile.Request{NamespacedName: types.NamespacedName{Name: "kubernetesclusters.compute.crossplane.io"}}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Controller publishes claims.
type Controller struct {
	hub      client.Client
	live     client.Reader // with the managed fields that the cache leaves out
	dynamic  dynamic.Interface
	mapper   meta.RESTMapper
	recorder events.EventRecorder
	watches  *watches.Watches
	changed  chan event.TypedGenericEvent[reconcile.Request]
	life     context.Context //nolint:containedctx // of the watch
	obstacles
}

// SetupWithManager adds the controller. life bounds its watch of claims.
func SetupWithManager(life context.Context, mgr ctrl.Manager) error {
	clients, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("preparing access to claims: %w", err)
	}
	c := &Controller{
		hub: mgr.GetClient(), live: mgr.GetAPIReader(), dynamic: clients, mapper: mgr.GetRESTMapper(),
		recorder:  mgr.GetEventRecorder("portico"),
		changed:   make(chan event.TypedGenericEvent[reconcile.Request], 1024),
		life:      life,
		obstacles: obstacles{byClaim: map[types.NamespacedName]types.NamespacedName{}},
	}
	c.watches = watches.New(life, watches.Options{
		Client: clients,
		Trim:   publication.Trim,
		Changed: func(_ schema.GroupVersionResource, claim types.NamespacedName) {
			c.look(reconcile.Request{NamespacedName: claim})
		},
		Lost: func(schema.GroupVersionResource) { c.look(theKind) },
	})
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("claim").
		Watches(definition, handler.EnqueueRequestsFromMapFunc(kind), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.KubernetesTarget{}, handler.EnqueueRequestsFromMapFunc(namesake), builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.ofSecret)).
		WatchesRawSource(source.Channel(c.changed, handler.TypedFuncs[reconcile.Request, reconcile.Request]{
			GenericFunc: func(_ context.Context, e event.TypedGenericEvent[reconcile.Request], q queue) { q.Add(e.Object) },
		})).
		Complete(retry.Quietly(c))
}

func (c *Controller) look(request reconcile.Request) {
	select {
	case c.changed <- event.TypedGenericEvent[reconcile.Request]{Object: request}:
	case <-c.life.Done():
	}
}

func kind(_ context.Context, definition client.Object) []reconcile.Request {
	if definition.GetName() != theKind.Name {
		return nil
	}
	return []reconcile.Request{theKind}
}

func namesake(_ context.Context, target client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(target)}}
}

// ofSecret asks for the claim that controls a Secret, and those it is in the way of.
func (c *Controller) ofSecret(_ context.Context, secret client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, claim := range c.behind(client.ObjectKeyFromObject(secret)) {
		out = append(out, reconcile.Request{NamespacedName: claim})
	}
	owner := metav1.GetControllerOf(secret)
	if owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == computev1alpha1.KubernetesClusterKind {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: owner.Name}})
	}
	return out
}

// Reconcile publishes one claim, or begins to watch them all.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	mapping, err := c.mapper.RESTMapping(computev1alpha1.KubernetesClusterKind)
	if meta.IsNoMatchError(err) || err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.absent(ctx, req)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("looking up the kind of claims: %w", err)
	}
	if req == theKind {
		return c.watch(ctx, mapping.Resource)
	}
	claim, err := c.dynamic.Resource(mapping.Resource).Namespace(req.Namespace).Get(ctx, req.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		c.forget(req.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, c.publish(ctx, claim)
}

// absent waits for the kind, once its definition is there.
func (c *Controller) absent(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req != theKind {
		return reconcile.Result{}, nil
	}
	c.watches.Release(theKind.NamespacedName)
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := c.hub.Get(ctx, theKind.NamespacedName, definition); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{RequeueAfter: soon}, nil
}

func (c *Controller) watch(ctx context.Context, kind schema.GroupVersionResource) (reconcile.Result, error) {
	err := c.watches.Need(ctx, theKind.NamespacedName, kind)
	var refused *watches.Refused
	if errors.As(err, &refused) && apierrors.IsNotFound(err) {
		return c.absent(ctx, theKind)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("watching claims: %w", err)
	}
	return reconcile.Result{}, nil
}

// publish makes the claim's target, or keeps it in step. A claim that is no
// longer bound keeps its target, which says whether it is reached.
func (c *Controller) publish(ctx context.Context, claim *unstructured.Unstructured) error {
	if claim.GetDeletionTimestamp() != nil || publication.Unbound(claim) != "" {
		return nil
	}
	existing, err := c.target(ctx, client.ObjectKeyFromObject(claim))
	if err != nil {
		return err
	}
	at := types.NamespacedName{Namespace: claim.GetNamespace(), Name: publication.ClaimSecret(claim)}
	c.note(client.ObjectKeyFromObject(claim), at)
	secret, err := c.secret(ctx, at)
	if err != nil {
		return err
	}
	desired, changed, refusal := publication.ForClaim(claim, secret, existing)
	if refusal == nil || refusal.Reason != v1alpha1.ReasonSecretNotControlled {
		c.forget(client.ObjectKeyFromObject(claim))
	}
	switch {
	case refusal != nil:
		narrate.Tell(c.recorder, claim, "Publish", narrate.Event{Warning: true, Reason: refusal.Reason, Note: refusal.Message})
		return nil
	case !changed:
		return nil
	case existing == nil:
		err := c.hub.Create(ctx, desired, client.FieldOwner(v1alpha1.ClaimManager))
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // the claim goes too
		}
		if err != nil {
			return fmt.Errorf("creating the target of claim %s: %w", client.ObjectKeyFromObject(claim), err)
		}
		narrate.Tell(c.recorder, claim, "Publish", narrate.Event{Reason: v1alpha1.EventPublished, Note: "published as KubernetesTarget " + desired.Name})
		return nil
	}
	locked := client.MergeFromWithOptions(existing, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Patch(ctx, desired, locked, client.FieldOwner(v1alpha1.ClaimManager)); err != nil {
		return fmt.Errorf("updating the target of claim %s: %w", client.ObjectKeyFromObject(claim), err)
	}
	return nil
}

func (c *Controller) target(ctx context.Context, key types.NamespacedName) (*v1alpha1.KubernetesTarget, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := c.live.Get(ctx, key, target); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // none is an answer
		}
		return nil, fmt.Errorf("reading target %s: %w", key, err)
	}
	return target, nil
}

// secret reads whose a claim's Secret is, and not what is in it.
func (c *Controller) secret(ctx context.Context, key types.NamespacedName) (metav1.Object, error) {
	if key.Name == "" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := c.live.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // none is an answer
		}
		return nil, fmt.Errorf("reading secret %s: %w", key, err)
	}
	return secret, nil
}
