// Package propagationkind looks up the kinds of PropagationKinds on the hub, adds them to the
// registry of kinds, and runs the controllers that send their objects.
package propagationkind

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies/propagationkinds"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=propagationkinds,verbs=get;list;watch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=propagationkinds/status,verbs=patch

// No event tells that a kind was installed on the hub, or that a right was granted. So a kind
// is looked up again after a delay.
const (
	notReadyRequeueAfter = 10 * time.Second
	readyRequeueAfter    = 5 * time.Minute
)

// hubKinds looks up kinds and rights on the hub.
type hubKinds interface {
	// Served returns a kind as the hub serves it, or nil for a kind that the hub does not
	// have.
	Served(ctx context.Context, kind schema.GroupKind) (*propagationkinds.Served, error)
	// Allows tells whether Portico may use a kind on the hub.
	Allows(ctx context.Context, attributes *authorizationv1.ResourceAttributes) (bool, error)
}

// sender runs the controllers that send the objects of a kind.
type sender interface {
	// Run runs the controllers of the kind of a PropagationKind. It restarts them if the kind
	// changed.
	Run(ctx context.Context, name string, kind *kinds.Custom) error
	// Stop stops the controllers of the kind of a PropagationKind.
	Stop(ctx context.Context, name string)
}

// Controller decides which PropagationKinds are ready. It runs on the leader.
type Controller struct {
	hub      client.Client
	writer   reconciler.Writer
	recorder events.Recorder
	kinds    hubKinds
	sender   sender
}

// Setup adds a controller for the objects of one kind to a manager.
type Setup func(mgr ctrl.Manager, kind kinds.Kind) error

// SetupWithManager adds the controller. The controllers of the setups send the objects of
// each kind, until ctx ends.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, setups ...Setup) error {
	lookup, err := newLookup(mgr)
	if err != nil {
		return err
	}
	c := &Controller{
		hub: mgr.GetClient(), writer: reconciler.Writer{Client: mgr.GetClient(), Owner: v1alpha1.KindManager},
		recorder: mgr.GetEventRecorder("portico"), kinds: lookup, sender: newSenders(ctx, mgr, setups),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("kind").
		For(&v1alpha1.PropagationKind{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconciler.RetryOnConflict(c))
}

// scope is the state of one reconcile.
type scope struct {
	kind, before *v1alpha1.PropagationKind
	served       *propagationkinds.Served
	missing      []rbacv1.PolicyRule
}

// Reconcile decides whether one PropagationKind is ready.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	kind := &v1alpha1.PropagationKind{}
	err := c.hub.Get(ctx, req.NamespacedName, kind)
	switch {
	case apierrors.IsNotFound(err):
		c.sender.Stop(ctx, req.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading PropagationKind %s: %w", req.Name, err)
	}
	return reconciler.Run(ctx, &scope{kind: kind, before: kind.DeepCopy()}, []reconciler.Step[*scope]{
		{Name: "find kind", Run: c.findKind},
		{Name: "check rights", Run: c.checkRights},
		{Name: "write status", Run: c.writeStatus},
		{Name: "send objects", Run: c.sendObjects},
	}, nil)
}

// findKind looks up the kind on the hub.
func (c *Controller) findKind(ctx context.Context, s *scope) error {
	if len(propagationkinds.Validate(s.kind)) > 0 {
		return nil // its status says so
	}
	var err error
	if s.served, err = c.kinds.Served(ctx, schema.GroupKind{Group: s.kind.Spec.Group, Kind: s.kind.Spec.Kind}); err != nil {
		return fmt.Errorf("looking up kind %s: %w", s.kind.Name, err)
	}
	return nil
}

// checkRights finds the rights to the kind that Portico lacks.
func (c *Controller) checkRights(ctx context.Context, s *scope) error {
	if s.served == nil || !s.served.Namespaced {
		return nil
	}
	for _, rule := range propagationkinds.Rules(s.kind.Spec.Group, *s.served) {
		for _, attributes := range propagationkinds.Attributes(rule, s.served.Version) {
			allowed, err := c.kinds.Allows(ctx, attributes)
			if err != nil {
				return fmt.Errorf("checking the rights to kind %s: %w", s.kind.Name, err)
			}
			if !allowed {
				s.missing = append(s.missing, rule)
				break
			}
		}
	}
	return nil
}

// writeStatus writes the result, with an event when it changed.
func (c *Controller) writeStatus(ctx context.Context, s *scope) error {
	propagationkinds.Observe(s.kind, s.served, s.missing)
	_, err := c.writer.PatchStatus(ctx, s.before, s.kind, reconciler.Emit(c.recorder, s.kind, "Serve"))
	return err
}

// sendObjects runs the controllers of a kind that is ready, and stops those of another.
func (c *Controller) sendObjects(ctx context.Context, s *scope) error {
	kind, ready := propagationkinds.KindOf(s.kind)
	if !ready {
		c.sender.Stop(ctx, s.kind.Name)
		return reconciler.RequeueAfter(notReadyRequeueAfter)
	}
	if err := c.sender.Run(ctx, s.kind.Name, kind); err != nil {
		return err
	}
	return reconciler.RequeueAfter(readyRequeueAfter)
}
