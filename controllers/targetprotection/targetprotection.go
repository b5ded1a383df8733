// Package targetprotection keeps a KubernetesTarget while resources are on it, and
// takes the resources off the target when the target is released.
package targetprotection

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications;kubernetesapplicationresources,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications/status;kubernetesapplicationresources/status;kubernetestargets/status,verbs=patch

// Controller keeps targets. Admission denies the deletion of a target in use. The
// finalizer is for the cases that admission does not see, such as a resource that is
// placed while its target is being deleted.
type Controller struct {
	hub      client.Client
	writer   reconciler.Writer
	recorder events.Recorder
}

func newController(hub client.Client, recorder events.Recorder) *Controller {
	return &Controller{hub: hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.TargetManager}, recorder: recorder}
}

// SetupWithManager adds the controller.
func SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("targetprotection").
		For(&v1alpha1.KubernetesTarget{}, builder.WithPredicates(reconciler.Updated(protectionChanged))).
		Watches(&v1alpha1.KubernetesApplicationResource{}, handler.EnqueueRequestsFromMapFunc(targetsOfResource),
			builder.WithPredicates(reconciler.Updated(targetsChanged))).
		Complete(reconciler.RetryOnConflict(newController(mgr.GetClient(), mgr.GetEventRecorder("portico"))))
}

// IndexApplication is the function of policies.TargetIndex for applications.
func IndexApplication(object client.Object) []string {
	app, ok := object.(*v1alpha2.KubernetesApplication)
	if !ok || app.Spec.TargetRef == nil {
		return nil
	}
	return []string{app.Spec.TargetRef.Name}
}

// protectionChanged tells whether an update of a target may require another protection.
// The finalizer counts: a reconcile for a new resource may have read the target from the
// cache before the cache had the removal of the finalizer.
func protectionChanged(before, after *v1alpha1.KubernetesTarget) bool {
	return before.Generation != after.Generation || after.DeletionTimestamp != nil ||
		!maps.Equal(before.Annotations, after.Annotations) ||
		controllerutil.ContainsFinalizer(before, v1alpha1.InUseFinalizer) != controllerutil.ContainsFinalizer(after, v1alpha1.InUseFinalizer)
}

func targetsOfResource(_ context.Context, object client.Object) []reconcile.Request {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	var out []reconcile.Request
	for _, name := range policies.TargetsOf(resource) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: resource.Namespace, Name: name}})
	}
	return out
}

// targetsChanged tells whether a resource got or lost a target.
func targetsChanged(before, after *v1alpha1.KubernetesApplicationResource) bool {
	return !slices.Equal(policies.TargetsOf(before), policies.TargetsOf(after))
}

// scope is the state of one reconcile of a target.
type scope struct {
	key    types.NamespacedName
	target *v1alpha1.KubernetesTarget
	// resources are on the target.
	resources []v1alpha1.KubernetesApplicationResource
}

// Reconcile protects one target, or releases it.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconciler.Run(ctx, &scope{key: req.NamespacedName}, []reconciler.Step[*scope]{
		{Name: "read target", Run: c.readTarget},
		{Name: "check protection", Run: c.checkProtection},
		{Name: "list resources", Run: c.listResources},
		{Name: "protect", Run: c.protect},
		{Name: "release", Run: c.release},
	}, nil)
}

func (c *Controller) readTarget(ctx context.Context, s *scope) error {
	s.target = &v1alpha1.KubernetesTarget{}
	found, err := reconciler.Find(ctx, c.hub, s.key, s.target)
	if err == nil && !found {
		return reconciler.ErrDone
	}
	return err
}

// checkProtection ends the reconcile of a target in use that has its finalizer. One
// resource is enough for this decision, and the others are not read. The index contains
// every change that starts a reconcile here; a count by other event handlers may be
// behind.
func (c *Controller) checkProtection(ctx context.Context, s *scope) error {
	if s.target.DeletionTimestamp != nil || len(s.target.Status.LeftBehind) > 0 || !controllerutil.ContainsFinalizer(s.target, v1alpha1.InUseFinalizer) {
		return nil
	}
	var one v1alpha1.KubernetesApplicationResourceList
	if err := c.list(ctx, s, &one, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	if len(one.Items) > 0 {
		return reconciler.ErrDone
	}
	return nil
}

// listResources lists the resources on the target. Objects that belong to a resource
// again are removed from status.leftBehind.
func (c *Controller) listResources(ctx context.Context, s *scope) error {
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.list(ctx, s, &list); err != nil {
		return err
	}
	s.resources = policies.ResourcesOnTarget(s.target.Name, list.Items)
	before := s.target.DeepCopy()
	s.target.Status.LeftBehind = policies.OrphanedObjects(s.target.Status.LeftBehind, s.resources)
	if len(before.Status.LeftBehind) == len(s.target.Status.LeftBehind) {
		return nil
	}
	_, err := c.writer.PatchStatus(ctx, before, s.target)
	return err
}

// list lists objects of the target's namespace that are on the target.
func (c *Controller) list(ctx context.Context, s *scope, list client.ObjectList, opts ...client.ListOption) error {
	opts = append(opts, client.InNamespace(s.key.Namespace), client.MatchingFields{policies.TargetIndex: s.key.Name})
	if err := c.hub.List(ctx, list, opts...); err != nil {
		return fmt.Errorf("listing %T on target %s: %w", list, s.key, err)
	}
	return nil
}

// protect sets the finalizer of a target in use, and removes it from other targets.
func (c *Controller) protect(ctx context.Context, s *scope) error {
	switch {
	case len(s.resources) == 0:
		if err := c.writer.RemoveFinalizer(ctx, s.target, v1alpha1.InUseFinalizer); err != nil {
			return err
		}
		return reconciler.ErrDone
	case s.target.DeletionTimestamp == nil:
		if err := c.writer.AddFinalizer(ctx, s.target, v1alpha1.InUseFinalizer); err != nil {
			return err
		}
		return reconciler.ErrDone
	case !policies.HasReleaseAnnotation(s.target):
		log.FromContext(ctx).V(2).Info("Denied deletion of target", "reason", v1alpha1.EventInUse, "resources", len(s.resources))
		events.Emit(c.recorder, s.target, "Delete", events.Event{Warning: true, Reason: v1alpha1.EventInUse, Note: policies.TargetInUseMessage(s.target.Name, s.resources)})
		return reconciler.ErrDone
	}
	return nil
}
