package scheduler

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// evaluatePolicies evaluates the policies for all objects of the unit. It ends the
// reconcile if not all objects have an answer yet, or if a unit without a target is
// denied.
func (r *scheduler) evaluatePolicies(ctx context.Context, s *scope) error {
	var err error
	s.review, err = r.reviews.Scheduling(ctx, s.name(), func(ctx context.Context) ([]engine.Question, error) { return r.questions(ctx, s) })
	switch {
	case err != nil:
		return err
	case !s.review.Complete():
		s.setCondition(inReview(s.unit, s.review))
	case !s.review.Allowed() && s.unit.target() == nil:
		c := denied(s.unit, s.review.Decision)
		ctrl.LoggerFrom(ctx).V(2).Info("Denied by policies", "reason", c.Reason, "message", c.Message)
		s.setCondition(c)
		s.unit.setPending()
	default:
		return nil
	}
	return s.end()
}

// questions returns one question for each object.
func (r *scheduler) questions(ctx context.Context, s *scope) ([]engine.Question, error) {
	namespace, err := policycheck.Namespace(ctx, r.hub, s.unit.GetNamespace())
	if err != nil {
		return nil, err
	}
	scheduling := decisions.NewSchedulingContext(namespace, s.unit.application(), s.query)
	objects := s.unit.objects(s.members)
	questions := make([]engine.Question, 0, len(objects))
	for _, object := range objects {
		questions = append(questions, scheduling.Question(input.Request{Operation: decisions.AuditOperation, Name: object.GetName()}, object, nil))
	}
	return questions, nil
}

// end ends a reconcile without a target.
func (s *scope) end() error {
	if after := s.review.RequeueAfter; after > 0 {
		return reconciler.RequeueAfter(after)
	}
	return reconciler.ErrDone
}
