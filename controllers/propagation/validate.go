package propagation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/policies"
)

// validate makes the same checks as admission, because a webhook can be unavailable. A
// resource that is being deleted may be invalid: an object that was never sent needs no
// deletion, and any other object is found by its name.
func (c *Controller) validate(ctx context.Context, s *scope.Scope) error {
	deleting := s.Resource.DeletionTimestamp != nil
	if !s.IsMoving() {
		c.observer.setScheduled(s, "")
	}
	if errs := policies.ValidateResource(s.Resource, nil); len(errs) > 0 && !deleting {
		s.SetFailed(v1alpha1.ReasonInvalidTemplate, errs.ToAggregate().Error())
		return reconcile.TerminalError(errs.ToAggregate())
	}
	err := c.buildDesired(ctx, s)
	if err != nil && deleting {
		return c.remover.finishDeletion(ctx, s)
	}
	if err != nil {
		s.SetFailed(v1alpha1.ReasonInvalidTemplate, err.Error())
		return reconcile.TerminalError(err)
	}
	return nil
}

// buildDesired builds the desired object from the template.
func (c *base) buildDesired(_ context.Context, s *scope.Scope) (err error) {
	s.Desired, err = plan.Desired(s.Resource, c.options.HubID)
	return err
}
