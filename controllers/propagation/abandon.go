package propagation

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets/status,verbs=patch

// connect connects to a target on which the object is to be deleted or released. If the
// target is unreachable and the resource has the release annotation, the object is
// abandoned instead.
func (c *remover) connect(ctx context.Context, s *scope.Scope) error {
	err := c.connector.connect(ctx, s)
	if !errors.Is(err, reconciler.ErrDone) || s.Resource.DeletionTimestamp == nil || !policies.HasReleaseAnnotation(s.Resource) ||
		!controllerutil.ContainsFinalizer(s.Resource, v1alpha1.PropagationFinalizer) {
		return err
	}
	unreachable, failed := c.isUnreachable(ctx, s.Target)
	if failed != nil {
		return failed
	}
	if !unreachable {
		return err
	}
	return c.abandonObject(ctx, s)
}

// isUnreachable tells whether a target does not answer, or does not exist any more. A
// target that was not probed yet is not unreachable.
func (c *remover) isUnreachable(ctx context.Context, target types.NamespacedName) (bool, error) {
	connection, err := c.clusters.Get(target)
	var problem *clusters.Problem
	switch {
	case errors.As(err, &problem):
		return true, nil
	case errors.Is(err, clusters.ErrUnknown):
		err = c.hub.Get(ctx, target, &v1alpha1.KubernetesTarget{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	case err != nil:
		return false, err
	}
	return connection.State().Reachable == metav1.ConditionFalse, nil
}

// abandonObject removes the reference of a deleted resource to an unreachable target,
// and records the object that remains there. The object keeps its marks: by them a new
// resource of the same name owns it again.
func (c *remover) abandonObject(ctx context.Context, s *scope.Scope) error {
	object := policies.RemoteObjectName(s.Resource)
	target, err := c.recordLeftBehind(ctx, s, object)
	if err != nil {
		return err
	}
	if err := c.leaveShared(ctx, s); err != nil {
		return err
	}
	before := s.Resource.DeepCopy()
	if plan.RefersTo(s.Resource.Spec.TargetRef, s.Target) {
		s.Resource.Spec.TargetRef = nil
	}
	if plan.RefersTo(s.Resource.Spec.LeavingTargetRef, s.Target) {
		s.Resource.Spec.LeavingTargetRef = nil
	}
	if len(policies.TargetsOf(s.Resource)) == 0 {
		controllerutil.RemoveFinalizer(s.Resource, v1alpha1.PropagationFinalizer)
	}
	wrote, err := c.writer.Patch(ctx, before, s.Resource, "abandoning the object of")
	if err != nil {
		return err
	}
	s.SkipStatus = true
	if !wrote {
		return reconciler.ErrDone // the resource is gone
	}
	if s.HasCopies() {
		object += ", with the copies of its Secrets and ConfigMaps,"
	}
	log.FromContext(ctx).V(1).Info("Abandoned object on unreachable target", "object", object, "reason", "the resource is being deleted, and has the release annotation")
	abandoned := events.Event{Warning: true, Reason: v1alpha1.EventGivenUp,
		Note: fmt.Sprintf("%s remains on target %s, which is unreachable, and Portico no longer manages it", object, s.Target.Name)}
	s.Events = append(s.Events, abandoned)
	if target != nil {
		events.Emit(c.recorder, target, "Release", abandoned)
	}
	return reconciler.ErrDone
}

// maxLeftObjects bounds the list in the status of a target.
const maxLeftObjects = 50

// recordLeftBehind lists an object in the status of its target. It returns nil if the
// target is not published any more.
func (c *remover) recordLeftBehind(ctx context.Context, s *scope.Scope, object string) (*v1alpha1.KubernetesTarget, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := c.live.Get(ctx, s.Target, target); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // nil stands for a target that does not exist
		}
		return nil, fmt.Errorf("reading target %s: %w", s.Target, err)
	}
	before := target.DeepCopy()
	target.Status.LeftBehind = appendLeftObject(target.Status.LeftBehind, v1alpha1.OrphanedObject{Object: object, Resource: s.Resource.Name, Time: metav1.Now()})
	if _, err := c.writer.PatchStatus(ctx, before, target); err != nil {
		return nil, err
	}
	return target, nil
}

// appendLeftObject adds an object to a list, which has each object once.
func appendLeftObject(list []v1alpha1.OrphanedObject, left v1alpha1.OrphanedObject) []v1alpha1.OrphanedObject {
	var out []v1alpha1.OrphanedObject
	for _, other := range list {
		if other.Object != left.Object {
			out = append(out, other)
		}
	}
	out = append(out, left)
	return out[max(0, len(out)-maxLeftObjects):]
}
