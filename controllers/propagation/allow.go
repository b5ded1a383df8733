package propagation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch

// checkAllowed makes the same check as admission. The target itself has the scope of
// the kind. A new object is not sent to a target that does not allow it. An existing
// object remains unchanged there, and is still reported. A change of spec.allow
// enqueues the resource.
func (c *applier) checkAllowed(ctx context.Context, s *scope.Scope) error {
	target := &v1alpha1.KubernetesTarget{}
	err := c.hub.Get(ctx, s.Target, target)
	if apierrors.IsNotFound(err) {
		return c.connector.reportUnknownTarget(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("reading target %s: %w", s.Target, err)
	}
	if denied := policies.NewObjectsDeniedReason(target); denied != "" && !s.State.Owned() {
		s.ClearRemoteStatus()
		s.SetFailed(v1alpha1.ReasonNotAllowed, fmt.Sprintf("target %s %s and accepts no new objects; delete this resource, or move it to another target", s.Target.Name, denied))
		return reconciler.ErrDone
	}
	var unknown error
	item := policies.AllowItemOf(s.Desired, func(schema.GroupVersionKind) bool {
		namespaced, err := s.Connection.Client().IsObjectNamespaced(s.Desired)
		unknown = err
		return !namespaced
	})
	if unknown != nil {
		return s.ProbeIfUnreachable(fmt.Errorf("looking up %s: %w", s.Desired.GetKind(), unknown))
	}
	denied := c.options.AllowDefaults.DeniedReason(target, item)
	if denied == "" {
		return nil
	}
	if s.State.Owned() {
		if err := c.observer.mirrorStatus(ctx, s); err != nil {
			return err
		}
	} else {
		s.ClearRemoteStatus()
	}
	s.SetFailed(v1alpha1.ReasonNotAllowed, fmt.Sprintf("target %s %s", s.Target.Name, denied))
	return reconciler.ErrDone
}
