// Package target connects to the clusters that KubernetesTargets publish, and reports
// in their status whether the clusters are reachable.
package target

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/managedcluster"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/connectionsecret"
	"github.com/portico-io/portico/policies/credentials"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch

// Options of the controller.
type Options struct {
	// Rules for the content of connection Secrets.
	Rules credentials.Rules
	// Connections are the options of the copies of managed clusters' connections.
	Connections connectionsecret.Options
	// ExpiryWarning is the time before the end of a credential at which an event warns
	// of it. Default 7 days.
	ExpiryWarning time.Duration
	// Clock is the real clock by default.
	Clock clock.PassiveClock
}

// Controller connects targets.
type Controller struct {
	options    Options
	hub        client.Client
	writer     reconciler.Writer
	live       client.Reader // for Secrets, which are not kept in memory
	clusters   *clusters.Clusters
	copier     *managedcluster.Copier
	recorder   events.Recorder
	changed    chan event.TypedGenericEvent[types.NamespacedName]
	ctx        context.Context //nolint:containedctx // of the connections
	remembered rememberedSpecs
}

// IndexSecret is the function of policies.ConnectionSecretIndex.
func IndexSecret(object client.Object) []string { return policies.ConnectionSecretKeys(object) }

// SetupWithManager adds the controller. Its connections end with ctx.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, targets *clusters.Clusters, o Options) error {
	if o.ExpiryWarning == 0 {
		o.ExpiryWarning = 7 * 24 * time.Hour
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		options:  o,
		hub:      mgr.GetClient(),
		writer:   reconciler.Writer{Client: mgr.GetClient(), Owner: v1alpha1.TargetManager},
		live:     mgr.GetAPIReader(),
		clusters: targets,
		recorder: mgr.GetEventRecorder("portico"),
		changed:  make(chan event.TypedGenericEvent[types.NamespacedName], 1024),
		ctx:      ctx,
	}
	var err error
	if c.copier, err = managedcluster.New(ctx, mgr, o.Connections, c.TargetChanged); err != nil {
		return err
	}
	targets.AddListener(c)
	return ctrl.NewControllerManagedBy(mgr).
		Named("target").
		// Writes of the status start a reconcile as well: a status that was computed from a
		// cache that was behind is computed again when the cache has the write.
		For(&v1alpha1.KubernetesTarget{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.targetsOfSecret)).
		Watches(definitionMetadata(), c.definitionHandler(), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(source.Channel(c.changed, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
			GenericFunc: func(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], q queue) {
				q.Add(reconcile.Request{NamespacedName: e.Object})
			},
		})).
		Complete(reconciler.RetryOnConflict(c))
}

// TargetChanged implements clusters.Listener.
func (c *Controller) TargetChanged(target types.NamespacedName) {
	select {
	case c.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: target}:
	case <-c.ctx.Done():
	}
}

// ProbesChanged implements clusters.Listener.
func (c *Controller) ProbesChanged(target types.NamespacedName) { c.TargetChanged(target) }

// ObjectChanged implements clusters.Listener.
func (c *Controller) ObjectChanged(_, _ types.NamespacedName) {}

func (c *Controller) targetsOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	key := client.ObjectKeyFromObject(secret)
	var list v1alpha1.KubernetesTargetList
	if err := c.hub.List(ctx, &list, client.MatchingFields{policies.ConnectionSecretIndex: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	out := append(requests(c.copier.TargetsOfSecret(key)), requests(c.remembered.targetsOfSecret(key))...)
	if target := c.options.Connections.TargetOfPrivateCopy(secret); target.Name != "" { // it may be deleted
		out = append(out, reconcile.Request{NamespacedName: target})
	}
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
