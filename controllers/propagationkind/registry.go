package propagationkind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/propagationkinds"
)

// Registry adds the kinds of the PropagationKinds to the registry of one replica. It runs on
// every replica, because every replica answers admission requests.
type Registry struct {
	hub    client.Reader
	loaded atomic.Bool
}

// NewRegistry adds a Registry to the manager.
func NewRegistry(mgr ctrl.Manager) (*Registry, error) {
	r := &Registry{hub: mgr.GetClient()}
	one := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} }
	err := ctrl.NewControllerManagedBy(mgr).
		Named("kind-registry").
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Watches(&v1alpha1.PropagationKind{}, handler.EnqueueRequestsFromMapFunc(one)).
		WatchesRawSource(source.TypedFunc[reconcile.Request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.Add(reconcile.Request{}) // also if there is no PropagationKind
			return nil
		})).
		Complete(r)
	if err != nil {
		return nil, fmt.Errorf("adding the registry of kinds: %w", err)
	}
	return r, nil
}

// Ready fails until the kinds of the PropagationKinds are in the registry.
func (r *Registry) Ready(*http.Request) error {
	if !r.loaded.Load() {
		return errors.New("kinds are not loaded")
	}
	return nil
}

// Reconcile replaces the kinds in the registry.
func (r *Registry) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var list v1alpha1.PropagationKindList
	if err := r.hub.List(ctx, &list); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing PropagationKinds: %w", err)
	}
	var all []*kinds.Custom
	for i := range list.Items {
		if kind, ready := propagationkinds.KindOf(&list.Items[i]); ready {
			all = append(all, kind)
		}
	}
	kinds.ReplaceCustom(all)
	r.loaded.Store(true)
	return reconcile.Result{}, nil
}
