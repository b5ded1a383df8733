package propagation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/policies"
)

// validate makes the same checks as admission, because a webhook can be unavailable. A
// resource that is being deleted may be invalid: an object that was never sent needs no
// deletion, and any other object is found by its name.
func (c *Controller) validate(ctx context.Context, s *scope) error {
	deleting := s.resource.DeletionTimestamp != nil
	if !s.isMoving() {
		c.observer.setScheduled(s, "")
	}
	if errs := policies.ValidateResource(s.resource, nil); len(errs) > 0 && !deleting {
		s.setFailed(v1alpha1.ReasonInvalidTemplate, errs.ToAggregate().Error())
		return reconcile.TerminalError(errs.ToAggregate())
	}
	err := c.buildDesired(ctx, s)
	if err != nil && deleting {
		return c.remover.finishDeletion(ctx, s)
	}
	if err != nil {
		s.setFailed(v1alpha1.ReasonInvalidTemplate, err.Error())
		return reconcile.TerminalError(err)
	}
	return nil
}

// buildDesired builds the desired object from the template.
func (c *base) buildDesired(_ context.Context, s *scope) (err error) {
	s.desired, err = plan.Desired(s.resource, c.options.HubID)
	return err
}
