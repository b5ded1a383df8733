package scheduler

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/targetselection"
)

func condition(u unit, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.Scheduled, Status: status, Reason: reason, Message: message, ObservedGeneration: u.GetGeneration(),
	}
}

// scheduled returns the condition of a unit on a target. explanation has the reasons
// against the other targets. If it is empty, the condition of the last choice is kept,
// unless the spec changed since.
func scheduled(u unit, target, explanation string) metav1.Condition {
	known := meta.FindStatusCondition(*u.conditions(), v1alpha1.Scheduled)
	if explanation == "" && known != nil && known.Reason == v1alpha1.ReasonScheduled && known.ObservedGeneration == u.GetGeneration() {
		return *known
	}
	message := fmt.Sprintf("%s %s runs on target %s", u.kind(), u.GetName(), target)
	if explanation != "" {
		message += "; " + explanation
	}
	return condition(u, metav1.ConditionTrue, v1alpha1.ReasonScheduled, message)
}

// unschedulable returns the condition of a unit that no target matches.
func unschedulable(u unit, decision targetselection.Decision) metav1.Condition {
	return condition(u, metav1.ConditionFalse, v1alpha1.ReasonNoMatchingTarget, decision.Message(u.GetNamespace()))
}

// cannotMove returns the condition of a unit that has to leave its target, and remains for
// a reason.
func cannotMove(u unit, from, reason string) metav1.Condition {
	return condition(u, metav1.ConditionTrue, v1alpha1.ReasonCannotMove,
		fmt.Sprintf("%s %s remains on target %s, which it has to leave: %s", u.kind(), u.GetName(), from, reason))
}

// denied returns the condition of a unit that policies deny.
func denied(u unit, d *engine.Decision) metav1.Condition {
	reason := v1alpha1.ReasonDeniedByPolicy
	if decisions.EvaluationFailed(d.Denied) {
		reason = v1alpha1.ReasonPolicyFailed
	}
	return condition(u, metav1.ConditionFalse, reason, strings.Join(decisions.Messages(d.Denied), "; "))
}

// inReview returns the condition of a unit whose policies are evaluated in slices. The
// number of objects is rounded down to a tenth of all, so that the condition is written
// ten times at most.
func inReview(u unit, review policycheck.Review) metav1.Condition {
	tenth := max(1, review.Total/10)
	message := fmt.Sprintf("policies were evaluated for at least %d of %d objects of %s %s", review.Evaluated/tenth*tenth, review.Total, u.kind(), u.GetName())
	if at := u.target(); at != nil {
		return condition(u, metav1.ConditionTrue, v1alpha1.ReasonProgressing, fmt.Sprintf("%s; it remains on target %s until then", message, at.Name))
	}
	return condition(u, metav1.ConditionFalse, v1alpha1.ReasonProgressing, message)
}
