// Package dependencies makes the resources of shared dependencies: one for each target on
// which other resources need the dependency.
package dependencies

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;create;patch;delete
// Owner references that block deletion need this where that admission is on.
// +kubebuilder:rbac:groups="",resources=serviceaccounts/finalizers,verbs=update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles/finalizers;rolebindings/finalizers,verbs=update

const (
	// maxConcurrentReconciles bounds the parallel reconciles.
	maxConcurrentReconciles = 8
	// nameRequeueAfter is the delay after which a name that was taken is tried again.
	nameRequeueAfter = time.Second
)

// Controller makes the resources of the objects of one kind.
type Controller struct {
	kind      kind
	hub       client.Client
	writer    reconciler.Writer
	recorder  events.Recorder
	orphaning reconciler.OrphaningOwners
}

func newController(kind kind, hub client.Client, recorder events.Recorder) *Controller {
	return &Controller{kind: kind, hub: hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.DependencyManager}, recorder: recorder}
}

// SetupWithManager adds a controller for every kind of shared dependencies.
func SetupWithManager(mgr ctrl.Manager) error {
	for _, kind := range all {
		c := newController(kind, mgr.GetClient(), mgr.GetEventRecorder("portico"))
		b := ctrl.NewControllerManagedBy(mgr).
			Named("dependencies-"+strings.ToLower(kind.name)).
			WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrentReconciles}).
			For(kind.empty(), builder.WithPredicates(nativeChanged())).
			Watches(kind.empty(), c.orphaning.Handler()).
			Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(c.dependenciesOf), builder.WithPredicates(needsChanged()))
		if kind.name == kinds.ServiceAccountKind {
			b = b.Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(accountsOfBinding)).
				Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(c.accountsThatNeed), builder.WithPredicates(reconciler.TakenChanged()))
		}
		if err := b.Complete(reconciler.RetryOnConflict(c)); err != nil {
			return fmt.Errorf("adding the controller of dependencies of kind %s: %w", kind.name, err)
		}
	}
	return nil
}

// scope is the state of one reconcile of an object.
type scope struct {
	kind   string
	key    types.NamespacedName
	native client.Object
	// resources send the object, each to one target. dependents need it. The cache owns
	// the dependents.
	resources, dependents []v1alpha1.KubernetesApplicationResource
	// need and keep are those of policies.TargetsOfDependency.
	need, keep []string
}

// LogValues implements reconciler.LogValuer.
func (s *scope) LogValues() []any {
	return []any{"kind", s.kind, "object", klog.KRef(s.key.Namespace, s.key.Name)}
}

// Reconcile makes and deletes the resources of one object.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconciler.Run(ctx, &scope{kind: c.kind.name, key: req.NamespacedName}, []reconciler.Step[*scope]{
		{Name: "list resources", Run: c.listResources},
		{Name: "remove owner", Run: c.removeOwner},
		{Name: "get object", Run: c.getObject},
		{Name: "delete resources", Run: c.deleteResources},
		{Name: "ensure resources", Run: c.ensureResources},
	}, nil)
}

// listResources lists the resources that send the object, and those that need it.
func (c *Controller) listResources(ctx context.Context, s *scope) error {
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.hub.List(ctx, &list, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(s.kind, s.key.Name)})
	if err != nil {
		return fmt.Errorf("listing the resources of %s %s: %w", s.kind, s.key, err)
	}
	s.need, s.keep = policies.TargetsOfDependency(list.Items, s.kind, s.key.Name)
	for i := range list.Items {
		resource := &list.Items[i]
		if policies.SendsDependency(resource, s.kind, s.key.Name) {
			s.resources = append(s.resources, *resource.DeepCopy())
		} else {
			s.dependents = append(s.dependents, *resource)
		}
	}
	return nil
}

// removeOwner removes the owner of the resources of an object that is, or was, deleted
// with --cascade=orphan. Propagation then leaves the object on the targets.
func (c *Controller) removeOwner(ctx context.Context, s *scope) error {
	uid, ok := c.orphaning.UID(s.key)
	if !ok {
		return nil
	}
	for i := range s.resources {
		if err := c.writer.RemoveOwner(ctx, &s.resources[i], uid); err != nil {
			return err
		}
	}
	c.orphaning.Forget(s.key, uid)
	if len(s.resources) > 0 {
		return reconciler.ErrDone // their change is an event
	}
	return nil
}

// getObject reads the object. Garbage collection deletes the resources of one that is
// deleted.
func (c *Controller) getObject(ctx context.Context, s *scope) error {
	s.native = c.kind.empty()
	found, err := reconciler.Find(ctx, c.hub, s.key, s.native)
	if err == nil && (!found || s.native.GetDeletionTimestamp() != nil) {
		return reconciler.ErrDone
	}
	return err
}

// deleteResources deletes the resources for targets on which no other resource needs the
// object any more.
func (c *Controller) deleteResources(ctx context.Context, s *scope) error {
	for i := range s.resources {
		resource := &s.resources[i]
		if ref := resource.Spec.TargetRef; resource.DeletionTimestamp != nil || ref != nil && slices.Contains(s.keep, ref.Name) {
			continue
		}
		if err := c.writer.Delete(ctx, resource, "no resource on its target needs it any more", client.Preconditions{UID: &resource.UID}); err != nil {
			return err
		}
	}
	return nil
}

// ensureResources creates or updates the resources for the targets on which other
// resources need the object.
func (c *Controller) ensureResources(ctx context.Context, s *scope) error {
	for _, target := range s.need {
		on := placement{target: target, dependents: policies.ResourcesOnTarget(target, s.dependents)}
		if own := policies.ResourcesOnTarget(target, s.resources); len(own) > 0 {
			on.current = &own[0]
		}
		desired, err := c.resourceFor(ctx, s.native, on)
		if err != nil {
			return err
		}
		if errs := policies.ValidateResource(desired, nil); len(errs) > 0 { // no webhook validates the object
			err := errs.ToAggregate()
			events.Emit(c.recorder, s.native, "Send", events.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: err.Error()})
			return reconcile.TerminalError(err)
		}
		if err := c.ensureResource(ctx, s, desired); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) ensureResource(ctx context.Context, s *scope, desired *v1alpha1.KubernetesApplicationResource) error {
	current := &v1alpha1.KubernetesApplicationResource{}
	found, err := reconciler.Find(ctx, c.hub, client.ObjectKeyFromObject(desired), current)
	switch {
	case err != nil:
		return err
	case !found:
		err = c.writer.Create(ctx, desired, "other resources on its target need it")
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return reconciler.ErrDone
		}
		return err
	case current.DeletionTimestamp != nil && policies.IsSharedDependency(current):
		return nil // its deletion is an event
	case !metav1.IsControlledBy(current, s.native):
		return c.waitForName(ctx, s, current)
	}
	before := current.DeepCopy()
	updateResource(current, desired)
	_, err = c.writer.Patch(ctx, before, current, "projecting its native object")
	return err
}

// waitForName waits until a resource of another owner is gone.
func (c *Controller) waitForName(ctx context.Context, s *scope, other *v1alpha1.KubernetesApplicationResource) error {
	ctrl.LoggerFrom(ctx).V(2).Info("Skipped dependency", "reason", "the name of its resource is taken", "resource", klog.KObj(other))
	if !policies.IsSharedDependency(other) {
		events.Emit(c.recorder, s.native, "Send", events.Event{Warning: true, Reason: v1alpha1.EventNameTaken, Note: fmt.Sprintf(
			"KubernetesApplicationResource %s exists and is not this object's; rename or delete one of them", other.Name)})
	}
	return reconciler.RequeueAfter(nameRequeueAfter)
}
