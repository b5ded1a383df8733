// Package dependencies makes the resources of shared dependencies: one for each target on
// which other resources need the dependency.
package dependencies

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
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
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;create;patch;delete
// Owner references that block deletion need this where that admission is on.
// +kubebuilder:rbac:groups="",resources=serviceaccounts/finalizers,verbs=update

const (
	// maxConcurrentReconciles bounds the parallel reconciles.
	maxConcurrentReconciles = 8
	// nameRequeueAfter is the delay after which a name that was taken is tried again.
	nameRequeueAfter = time.Second
)

// Controller makes the resources of ServiceAccounts.
type Controller struct {
	hub       client.Client
	writer    reconciler.Writer
	recorder  events.Recorder
	orphaning reconciler.OrphaningOwners
}

func newController(hub client.Client, recorder events.Recorder) *Controller {
	return &Controller{hub: hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.DependencyManager}, recorder: recorder}
}

// SetupWithManager adds the controller.
func SetupWithManager(mgr ctrl.Manager) error {
	c := newController(mgr.GetClient(), mgr.GetEventRecorder("portico"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("dependencies").
		WithOptions(controller.Options{MaxConcurrentReconciles: maxConcurrentReconciles}).
		For(&corev1.ServiceAccount{}, builder.WithPredicates(accountChanged())).
		Watches(&corev1.ServiceAccount{}, c.orphaning.Handler()).
		Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(dependenciesOf), builder.WithPredicates(needsChanged())).
		Complete(reconciler.RetryOnConflict(c))
}

// scope is the state of one reconcile of a ServiceAccount.
type scope struct {
	key     types.NamespacedName
	account *corev1.ServiceAccount
	// resources send the account, each to one target.
	resources []v1alpha1.KubernetesApplicationResource
	// need and keep are those of policies.TargetsOfDependency.
	need, keep []string
}

// LogValues implements reconciler.LogValuer.
func (s *scope) LogValues() []any {
	return []any{"kind", kinds.ServiceAccountKind, "object", klog.KRef(s.key.Namespace, s.key.Name)}
}

// Reconcile makes and deletes the resources of one ServiceAccount.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconciler.Run(ctx, &scope{key: req.NamespacedName}, []reconciler.Step[*scope]{
		{Name: "list resources", Run: c.listResources},
		{Name: "remove owner", Run: c.removeOwner},
		{Name: "get account", Run: c.getAccount},
		{Name: "delete resources", Run: c.deleteResources},
		{Name: "ensure resources", Run: c.ensureResources},
	}, nil)
}

// listResources lists the resources that send the account, and the targets on which other
// resources need it. The cache owns the items.
func (c *Controller) listResources(ctx context.Context, s *scope) error {
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.hub.List(ctx, &list, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(kinds.ServiceAccountKind, s.key.Name)})
	if err != nil {
		return fmt.Errorf("listing the resources of ServiceAccount %s: %w", s.key, err)
	}
	s.need, s.keep = policies.TargetsOfDependency(list.Items, kinds.ServiceAccountKind, s.key.Name)
	for i := range list.Items {
		owner := policies.DependencyOwner(&list.Items[i])
		if owner != nil && owner.Kind == kinds.ServiceAccountKind && owner.Name == s.key.Name && policies.IsSharedDependency(&list.Items[i]) {
			s.resources = append(s.resources, *list.Items[i].DeepCopy())
		}
	}
	return nil
}

// removeOwner removes the owner of the resources of an account that is, or was, deleted
// with --cascade=orphan. Propagation then leaves the account on the targets.
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

// getAccount reads the account. Garbage collection deletes the resources of one that is
// deleted.
func (c *Controller) getAccount(ctx context.Context, s *scope) error {
	s.account = &corev1.ServiceAccount{}
	found, err := reconciler.Find(ctx, c.hub, s.key, s.account)
	if err == nil && (!found || s.account.DeletionTimestamp != nil) {
		return reconciler.ErrDone
	}
	return err
}

// deleteResources deletes the resources for targets on which no other resource needs the
// account any more.
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
// resources need the account.
func (c *Controller) ensureResources(ctx context.Context, s *scope) error {
	for _, target := range s.need {
		desired, err := resourceFor(s.account, target)
		if err != nil {
			events.Emit(c.recorder, s.account, "Send", events.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: err.Error()})
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
	case !metav1.IsControlledBy(current, s.account):
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
		events.Emit(c.recorder, s.account, "Send", events.Event{Warning: true, Reason: v1alpha1.EventNameTaken, Note: fmt.Sprintf(
			"KubernetesApplicationResource %s exists and is not this object's; rename or delete one of them", other.Name)})
	}
	return reconciler.RequeueAfter(nameRequeueAfter)
}
