// Package target connects the clusters that KubernetesTargets publish, and
// tells in their status whether they answer.
package target

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/controllers/retry"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch

// Controller connects targets.
type Controller struct {
	hub      client.Client
	secrets  client.Reader // live: Secrets are not kept in memory
	clusters *clusters.Clusters
	recorder events.EventRecorder
	changed  chan event.TypedGenericEvent[types.NamespacedName]
	life     context.Context //nolint:containedctx // of the connections
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
func SetupWithManager(life context.Context, mgr ctrl.Manager, targets *clusters.Clusters) error {
	c := &Controller{
		hub:      mgr.GetClient(),
		secrets:  mgr.GetAPIReader(),
		clusters: targets,
		recorder: mgr.GetEventRecorder("portico"),
		changed:  make(chan event.TypedGenericEvent[types.NamespacedName], 1024),
		life:     life,
	}
	targets.Listen(c)
	return ctrl.NewControllerManagedBy(mgr).
		Named("target").
		// Its own reports wake it as well: one that was made from a cache that
		// was behind is looked at again once the cache has it.
		For(&v1alpha1.KubernetesTarget{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.targetsOf)).
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
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile connects one target and reports its state.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := c.hub.Get(ctx, req.NamespacedName, target); err != nil {
		if apierrors.IsNotFound(err) {
			c.clusters.Close(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := c.connect(ctx, target); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, c.report(ctx, target)
}

// connect makes the connection the target's Secret describes.
func (c *Controller) connect(ctx context.Context, target *v1alpha1.KubernetesTarget) error {
	key := client.ObjectKeyFromObject(target)
	if target.Spec.ConnectionSecretRef == nil {
		c.clusters.Break(key, v1alpha1.ReasonSecretMissing, "names no connection secret")
		return nil
	}
	name := target.Spec.ConnectionSecretRef.Name
	secret := &corev1.Secret{}
	err := c.secrets.Get(ctx, types.NamespacedName{Namespace: target.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		c.clusters.Break(key, v1alpha1.ReasonSecretMissing, fmt.Sprintf("has no connection: secret %s does not exist", name))
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the connection secret of target %s: %w", key, err)
	}
	config, err := clusters.Config(secret.Data)
	if err == nil {
		err = c.clusters.Connect(c.life, key, config, clusters.Digest(secret.Data))
	}
	if err != nil {
		c.clusters.Break(key, v1alpha1.ReasonInvalidConnection, fmt.Sprintf("has no usable connection: secret %s: %v", name, err))
	}
	return nil
}

// report writes the target's status, when it changed.
func (c *Controller) report(ctx context.Context, target *v1alpha1.KubernetesTarget) error {
	before := target.DeepCopy()
	describe(target, c.stateOf(client.ObjectKeyFromObject(target)))
	if equality.Semantic.DeepEqual(before.Status, target.Status) {
		return nil
	}
	// Locked, because going by a cache that is behind would tell a story twice.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Status().Patch(ctx, target, patch, client.FieldOwner(v1alpha1.TargetManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of target %s: %w", client.ObjectKeyFromObject(target), err))
	}
	narrate.Tell(c.recorder, target, "Connect", narrate.Changes(before.Status.Conditions, target.Status.Conditions)...)
	return nil
}

func (c *Controller) stateOf(key types.NamespacedName) clusters.State {
	connection, err := c.clusters.Get(key)
	var problem *clusters.Problem
	if errors.As(err, &problem) {
		return clusters.State{Reachable: metav1.ConditionFalse, Reason: problem.Reason, Message: problem.Message, Since: problem.Since}
	}
	return connection.State()
}

// describe sets a target's status from what is known of its cluster. Synced
// says whether its connection could be made at all, Ready whether it works.
func describe(target *v1alpha1.KubernetesTarget, state clusters.State) {
	if state.Reachable == metav1.ConditionUnknown && meta.FindStatusCondition(target.Status.Conditions, v1alpha1.TargetReachable) != nil {
		return // what was known stands until more is
	}
	if state.Version != "" {
		target.Status.ServerVersion = state.Version
	}
	reachable := state.Condition(target.Name, target.Generation)
	meta.SetStatusCondition(&target.Status.Conditions, reachable)
	synced := metav1.Condition{
		Type: v1alpha1.Synced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied,
		Message: "the connection secret is usable", ObservedGeneration: target.Generation,
	}
	switch state.Reason {
	case v1alpha1.ReasonSecretMissing, v1alpha1.ReasonInvalidConnection:
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, state.Reason, reachable.Message
	}
	meta.SetStatusCondition(&target.Status.Conditions, synced)
	ready := reachable
	ready.Type = v1alpha1.Ready
	meta.SetStatusCondition(&target.Status.Conditions, ready)
}
