package propagation

import (
	"context"
	"errors"
	"fmt"

	"github.com/portico-io/portico/controllers/propagation/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets/status,verbs=patch

// connect connects to a target on which the object is to be deleted or released. If the
// target is unreachable and the resource has the release annotation, the object is
// abandoned instead.
func (c *remover) connect(ctx context.Context, s *scope) error {
	err := c.connector.connect(ctx, s)
	if !errors.Is(err, reconciler.ErrDone) || s.resource.DeletionTimestamp == nil || !policies.HasReleaseAnnotation(s.resource) ||
		!controllerutil.ContainsFinalizer(s.resource, v1alpha1.PropagationFinalizer) {
		return err
	}
	unreachable, failed := c.isUnreachable(ctx, s.target)
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
func (c *remover) abandonObject(ctx context.Context, s *scope) error {
	object := policies.RemoteObjectName(s.resource)
	target, err := c.recordLeftBehind(ctx, s, object)
	if err != nil {
		return err
	}
	if err := c.leaveShared(ctx, s); err != nil {
		return err
	}
	before := s.resource.DeepCopy()
	if plan.RefersTo(s.resource.Spec.TargetRef, s.target) {
		s.resource.Spec.TargetRef = nil
	}
	if plan.RefersTo(s.resource.Spec.LeavingTargetRef, s.target) {
		s.resource.Spec.LeavingTargetRef = nil
	}
	if len(policies.TargetsOf(s.resource)) == 0 {
		controllerutil.RemoveFinalizer(s.resource, v1alpha1.PropagationFinalizer)
	}
	wrote, err := c.writer.Patch(ctx, before, s.resource, "abandoning the object of")
	if err != nil {
		return err
	}
	s.skipStatus = true
	if !wrote {
		return reconciler.ErrDone // the resource is gone
	}
	if s.hasCopies() {
		object += ", with the copies of its Secrets and ConfigMaps,"
	}
	log.FromContext(ctx).V(1).Info("Abandoned object on unreachable target", "object", object, "reason", "the resource is being deleted, and has the release annotation")
	abandoned := events.Event{Warning: true, Reason: v1alpha1.EventGivenUp,
		Note: fmt.Sprintf("%s remains on target %s, which is unreachable, and Portico no longer manages it", object, s.target.Name)}
	s.events = append(s.events, abandoned)
	if target != nil {
		events.Emit(c.recorder, target, "Release", abandoned)
	}
	return reconciler.ErrDone
}

// waitForTargetToDelete reports that a deletion waits for the target. For an
// unreachable target, which may never return, the message names the alternative.
func (s *scope) waitForTargetToDelete() {
	purpose := "to delete"
	if orphansObject(s.resource) {
		purpose = "to remove Portico's marks from"
	}
	message := fmt.Sprintf("waiting for target %s, %s %s there", s.target.Name, purpose, policies.RemoteObjectName(s.resource))
	if !meta.IsStatusConditionFalse(s.resource.Status.Conditions, v1alpha1.TargetReachable) { // the target is probed in a moment
		s.resource.Status.State = v1alpha1.StateDeleting
		s.setCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonWithdrawing, message)
		return
	}
	s.reportDeletionWait(fmt.Sprintf("%s; if the target never returns, release the object: kubectl annotate kubernetesapplicationresource %s %s=true",
		message, s.resource.Name, v1alpha1.ReleaseAnnotation))
}

// maxLeftObjects bounds the list in the status of a target.
const maxLeftObjects = 50

// recordLeftBehind lists an object in the status of its target. It returns nil if the
// target is not published any more.
func (c *remover) recordLeftBehind(ctx context.Context, s *scope, object string) (*v1alpha1.KubernetesTarget, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := c.live.Get(ctx, s.target, target); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // nil stands for a target that does not exist
		}
		return nil, fmt.Errorf("reading target %s: %w", s.target, err)
	}
	before := target.DeepCopy()
	target.Status.LeftBehind = appendLeftObject(target.Status.LeftBehind, v1alpha1.OrphanedObject{Object: object, Resource: s.resource.Name, Time: metav1.Now()})
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
