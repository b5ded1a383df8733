package claim

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// policyRetryInterval is the delay before policies whose evaluation failed are
// evaluated again.
const policyRetryInterval = 5 * time.Second

// checkPolicies evaluates the publish policies for a target that is new or changes.
// Admission evaluated them for the author of the claim. The policies may have changed
// before the claim was bound, so they are evaluated again, without an author.
func (c *Controller) checkPolicies(ctx context.Context, s *scope) error {
	if !s.changed {
		c.memory.setDenied(s.key, false)
		return nil
	}
	c.memory.setDenied(s.key, true) // before the evaluation, so that no change of a policy is missed
	decision, err := c.evaluate(ctx, s)
	if err != nil {
		return err
	}
	if decision.Allowed() {
		c.memory.setDenied(s.key, false)
		return nil
	}
	return c.reportDenied(ctx, s, decision)
}

func (c *Controller) evaluate(ctx context.Context, s *scope) (*engine.Decision, error) {
	return policycheck.Publish(ctx, c.evaluator, "claim", s.key.Namespace, func(ctx context.Context) ([]engine.Question, error) {
		namespace, err := policycheck.Namespace(ctx, c.hub, s.key.Namespace)
		if err != nil {
			return nil, err
		}
		related, err := decisions.ListRelatedTargets(s.desired, func(key string) ([]v1alpha1.KubernetesTarget, error) {
			var list v1alpha1.KubernetesTargetList
			err := c.hub.List(ctx, &list, client.MatchingFields{policies.RelatedTargetIndex: key}, client.UnsafeDisableDeepCopy)
			return list.Items, err
		})
		if err != nil {
			return nil, err
		}
		request := input.Request{Operation: decisions.AuditOperation, Name: s.desired.Name, Namespace: s.desired.Namespace}
		return []engine.Question{decisions.PublishQuestion(request, s.desired, s.existing, namespace, related)}, nil
	})
}

// reportDenied reports a denial on the claim, and on the target if it exists. The
// target is not changed.
func (c *Controller) reportDenied(ctx context.Context, s *scope, decision *engine.Decision) error {
	reason, ended := v1alpha1.ReasonDeniedByPolicy, reconciler.ErrDone
	if decisions.EvaluationFailed(decision.Denied) {
		reason, ended = v1alpha1.ReasonPolicyFailed, reconciler.RequeueAfter(policyRetryInterval)
	}
	violations := strings.Join(decisions.Messages(decision.Denied), "; ")
	note := "the claim is not published: " + violations
	if s.existing != nil {
		note = "the target does not follow the change of its claim: " + violations
	}
	log.FromContext(ctx).V(2).Info("Denied target of claim", "reason", reason)
	events.Emit(c.recorder, s.claim, "Publish", events.Event{Warning: true, Reason: reason, Note: note})
	if s.existing != nil {
		s.target, s.published = s.existing, &metav1.Condition{Type: v1alpha1.Published, Status: metav1.ConditionFalse, Reason: reason, Message: note}
	}
	return ended
}
