// Package target connects the clusters that KubernetesTargets publish, and
// tells in their status whether they answer.
package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/publish"
	"github.com/portico-io/portico/controllers/retry"
	"github.com/portico-io/portico/policies/credentials"
	"github.com/portico-io/portico/policies/publication"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch

// Options of the controller.
type Options struct {
	// Rules that connection Secrets are judged by.
	Rules credentials.Rules
	// ExpiryWarning is how long before the end of a credential it is told.
	// Default 7 days.
	ExpiryWarning time.Duration
	// Clock tells the time. Default: the real one.
	Clock clock.PassiveClock
}

// Controller connects targets.
type Controller struct {
	options   Options
	hub       client.Client
	live      client.Reader // for Secrets, which are not kept in memory
	clusters  *clusters.Clusters
	publisher *publish.Publisher
	recorder  events.EventRecorder
	changed   chan event.TypedGenericEvent[types.NamespacedName]
	life      context.Context //nolint:containedctx // of the connections
}

// SecretIndex finds targets by the name of their connection Secret.
const SecretIndex = "spec.connectionSecretRef.name"

// IndexSecret is SecretIndex's function.
func IndexSecret(object client.Object) []string {
	target, ok := object.(*v1alpha1.KubernetesTarget)
	if !ok || target.Spec.ConnectionSecretRef == nil {
		return nil
	}
	return []string{target.Spec.ConnectionSecretRef.Name}
}

// SetupWithManager adds the controller. life bounds the connections it makes.
func SetupWithManager(life context.Context, mgr ctrl.Manager, targets *clusters.Clusters, o Options) error {
	if o.ExpiryWarning == 0 {
		o.ExpiryWarning = 7 * 24 * time.Hour
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		options:  o,
		hub:      mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		clusters: targets,
		recorder: mgr.GetEventRecorder("portico"),
		changed:  make(chan event.TypedGenericEvent[types.NamespacedName], 1024),
		life:     life,
	}
	var err error
	if c.publisher, err = publish.New(life, mgr, c.TargetChanged); err != nil {
		return err
	}
	targets.Listen(c)
	return ctrl.NewControllerManagedBy(mgr).
		Named("target").
		// Its own reports wake it as well: one that was made from a cache that
		// was behind is looked at again once the cache has it.
		For(&v1alpha1.KubernetesTarget{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.targetsOf)).
		Watches(definition(), c.definitions(), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(source.Channel(c.changed, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
			GenericFunc: func(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], q queue) {
				q.Add(reconcile.Request{NamespacedName: e.Object})
			},
		})).
		Complete(retry.Quietly(c))
}

// TargetChanged implements clusters.Listener.
func (c *Controller) TargetChanged(target types.NamespacedName) {
	select {
	case c.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: target}:
	case <-c.life.Done():
	}
}

// ObjectChanged implements clusters.Listener.
func (c *Controller) ObjectChanged(_, _ types.NamespacedName) {}

func (c *Controller) targetsOf(ctx context.Context, secret client.Object) []reconcile.Request {
	var list v1alpha1.KubernetesTargetList
	if err := c.hub.List(ctx, &list, client.InNamespace(secret.GetNamespace()), client.MatchingFields{SecretIndex: secret.GetName()}); err != nil {
		return nil
	}
	out := requests(c.publisher.OfSecret(client.ObjectKeyFromObject(secret)))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile connects one target and reports its state.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	target := &v1alpha1.KubernetesTarget{}
	err := c.hub.Get(ctx, req.NamespacedName, target)
	if apierrors.IsNotFound(err) {
		return c.close(ctx, req.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	var since time.Time
	if was := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.TargetReachable); was != nil && was.Status == metav1.ConditionFalse {
		since = was.LastTransitionTime.Time
	}
	c.clusters.DownSince(req.NamespacedName, since)
	published, err := c.publisher.Publish(ctx, target)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("publishing the cluster of target %s: %w", req, err)
	}
	if err := c.connect(ctx, target, published.Refusal); err != nil {
		return reconcile.Result{}, err
	}
	known := c.known(req.NamespacedName)
	known.unpublished = published.Refusal
	if err := c.report(ctx, target, known); err != nil {
		return reconcile.Result{}, err
	}
	again := nextLook(known.expiry, c.options.Clock.Now(), c.options.ExpiryWarning)
	if again == 0 || published.Again > 0 && published.Again < again {
		again = published.Again
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// close drops the connection of a target that is gone.
func (c *Controller) close(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	c.publisher.Forget(key)
	needed, err := c.needed(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if needed {
		return reconcile.Result{RequeueAfter: wait.Jitter(soon, 1)}, nil
	}
	c.clusters.Close(key)
	return reconcile.Result{}, nil
}

// soon is how often a namespace that is being deleted is asked whether it still
// needs a target.
const soon = time.Second

// needed tells whether a connection is the only way left to delete what runs on
// a target. A namespace that is deleted loses its targets, their Secrets and its
// workloads at once, and a Secret cannot be put back into it.
func (c *Controller) needed(ctx context.Context, key types.NamespacedName) (bool, error) {
	if _, err := c.clusters.Get(key); err != nil {
		return false, nil // there is no connection to keep
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	// Live, because the cache of namespaces may be behind that of targets.
	if err := c.live.Get(ctx, types.NamespacedName{Name: key.Namespace}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp == nil {
		return false, nil
	}
	var resources v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(ctx, &resources, client.InNamespace(key.Namespace)); err != nil {
		return false, fmt.Errorf("listing the resources on target %s: %w", key, err)
	}
	return slices.ContainsFunc(resources.Items, func(r v1alpha1.KubernetesApplicationResource) bool {
		return r.Spec.TargetRef != nil && r.Spec.TargetRef.Name == key.Name
	}), nil
}

// connect makes the connection the target's Secret describes.
func (c *Controller) connect(ctx context.Context, target *v1alpha1.KubernetesTarget, unpublished *publication.Refusal) error {
	key := client.ObjectKeyFromObject(target)
	if target.Spec.ConnectionSecretRef == nil {
		if unpublished != nil {
			c.clusters.Break(key, unpublished.Reason, "has no connection: "+unpublished.Message)
			return nil
		}
		c.clusters.Break(key, v1alpha1.ReasonSecretMissing, "names no connection secret")
		return nil
	}
	name := target.Spec.ConnectionSecretRef.Name
	secret := &corev1.Secret{}
	err := c.live.Get(ctx, types.NamespacedName{Namespace: target.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		if needed, err := c.needed(ctx, key); needed || err != nil {
			return err
		}
		c.clusters.Break(key, v1alpha1.ReasonSecretMissing, fmt.Sprintf("has no connection: secret %s does not exist", name))
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the connection secret of target %s: %w", key, err)
	}
	way, problems := clusters.WayTo(target, secret.Data, c.options.Rules)
	if problems != nil {
		c.clusters.Break(key, v1alpha1.ReasonInvalidConnection, fmt.Sprintf("has no usable connection: secret %s: %v", name, problems.ToAggregate()))
		return nil
	}
	if err := c.clusters.Connect(c.life, key, way); err != nil {
		// Its words are about certificates, and may quote them.
		c.clusters.Break(key, v1alpha1.ReasonInvalidConnection, fmt.Sprintf("has no usable connection: secret %s does not describe one", name))
	}
	return nil
}

// report writes the target's status, when it changed.
func (c *Controller) report(ctx context.Context, target *v1alpha1.KubernetesTarget, known knowledge) error {
	before := target.DeepCopy()
	describe(target, known, c.options.Clock.Now(), c.options.ExpiryWarning)
	if equality.Semantic.DeepEqual(before.Status, target.Status) {
		return nil
	}
	// Locked, because going by a cache that is behind would tell a story twice.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Status().Patch(ctx, target, patch, client.FieldOwner(v1alpha1.TargetManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of target %s: %w", client.ObjectKeyFromObject(target), err))
	}
	story := narrate.Changes(before.Status.Conditions, target.Status.Conditions)
	story = append(story, warnings(before.Status.Conditions, target.Status.Conditions)...)
	narrate.Tell(c.recorder, target, "Connect", story...)
	return nil
}

func (c *Controller) known(key types.NamespacedName) knowledge {
	connection, err := c.clusters.Get(key)
	var problem *clusters.Problem
	if errors.As(err, &problem) {
		return knowledge{state: clusters.State{Reachable: metav1.ConditionFalse, Reason: problem.Reason, Message: problem.Message, Since: problem.Since}}
	}
	way := connection.Way()
	return knowledge{state: connection.State(), host: way.Host, expiry: way.Expiry}
}
