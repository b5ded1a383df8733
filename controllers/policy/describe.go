package policy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies/engine"
)

// describe sets a policy's status from what the engine made of it. shipped is
// the revision that this version of Portico brings under the policy's name, ""
// when it brings none.
func describe(policy *policyv1alpha1.Policy, state engine.State, shipped string) {
	status := &policy.Status
	status.ObservedGeneration = policy.Generation
	status.Revision = state.Serving
	status.Engine = engine.Version
	status.Tests = state.Summary
	for _, condition := range []metav1.Condition{compiled(state), tested(state), ready(policy, state)} {
		condition.ObservedGeneration = policy.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if shipped == "" {
		meta.RemoveStatusCondition(&status.Conditions, policyv1alpha1.Customized)
		return
	}
	condition := customized(policy, state.Revision, shipped)
	condition.ObservedGeneration = policy.Generation
	meta.SetStatusCondition(&status.Conditions, condition)
}

func compiled(state engine.State) metav1.Condition {
	if state.Compiled() {
		return metav1.Condition{
			Type: policyv1alpha1.Compiled, Status: metav1.ConditionTrue, Reason: policyv1alpha1.ReasonCompiled,
			Message: "the modules compile",
		}
	}
	return metav1.Condition{
		Type: policyv1alpha1.Compiled, Status: metav1.ConditionFalse, Reason: policyv1alpha1.ReasonNotCompiled,
		Message: problems(state),
	}
}

func tested(state engine.State) metav1.Condition {
	out := metav1.Condition{Type: policyv1alpha1.TestsPassed, Status: metav1.ConditionUnknown}
	switch tests := state.Summary; {
	case tests == nil:
		out.Reason, out.Message = policyv1alpha1.ReasonNotCompiled, "the tests run once the modules compile"
	case !state.OK():
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, policyv1alpha1.ReasonFailed, problems(state)
	case tests.Passed == 0:
		out.Reason, out.Message = policyv1alpha1.ReasonNoTests, "there are no tests; add a module whose name ends in _test.rego"
	default:
		out.Status, out.Reason = metav1.ConditionTrue, policyv1alpha1.ReasonPassed
		out.Message = fmt.Sprintf("%s pass, and reach %d %% of the lines", tests.Summary, tests.Coverage)
	}
	return out
}

func ready(policy *policyv1alpha1.Policy, state engine.State) metav1.Condition {
	out := metav1.Condition{Type: policyv1alpha1.Ready, Status: metav1.ConditionFalse}
	switch {
	case state.OK():
		out.Status, out.Reason = metav1.ConditionTrue, policyv1alpha1.ReasonActive
		out.Message = "what spec says decides"
		if policy.Spec.Type == policyv1alpha1.Library {
			out.Message = "what spec says is what others import"
		}
	case state.Serving != "":
		out.Reason = policyv1alpha1.ReasonLastGoodServing
		out.Message = fmt.Sprintf("revision %s decides, because what spec says cannot: %s", state.Serving, problems(state))
	default:
		out.Reason = policyv1alpha1.ReasonBroken
		out.Message = fmt.Sprintf("no form of it works, and what it matches goes by failurePolicy %s: %s", policy.Spec.FailurePolicy, problems(state))
		if policy.Spec.Type == policyv1alpha1.Library {
			out.Message = "no form of it works, and what imports it is broken as well: " + problems(state)
		}
	}
	return out
}

func customized(policy *policyv1alpha1.Policy, revision, shipped string) metav1.Condition {
	out := metav1.Condition{Type: policyv1alpha1.Customized, Status: metav1.ConditionFalse, Reason: policyv1alpha1.ReasonAsShipped, Message: "it is as this version of Portico ships it"}
	switch {
	case policy.Annotations[policyv1alpha1.EmbeddedRevisionAnnotation] != revision:
		out.Status, out.Reason = metav1.ConditionTrue, policyv1alpha1.ReasonEdited
		out.Message = fmt.Sprintf("it was edited, and upgrades leave it alone; this version of Portico ships revision %s, and creates it anew when the policy is deleted", shipped)
	case revision != shipped:
		out.Message = "it is as an earlier version of Portico shipped it, and about to be upgraded"
	}
	return out
}

// maxProblems is how much of a long list a condition carries. Admission tells all.
const maxProblems = 4096

func problems(state engine.State) string {
	if state.OK() {
		return ""
	}
	text := state.Err().Error()
	if len(text) > maxProblems {
		text = strings.ToValidUTF8(text[:maxProblems], "") + "..."
	}
	return text
}

// story is what changed between two statuses of a policy.
func story(before, after policyv1alpha1.PolicyStatus) []narrate.Event {
	was := meta.FindStatusCondition(before.Conditions, policyv1alpha1.Ready)
	is := meta.FindStatusCondition(after.Conditions, policyv1alpha1.Ready)
	switch {
	case is == nil:
		return nil
	case is.Status != metav1.ConditionTrue:
		if was != nil && was.Reason == is.Reason && was.Message == is.Message {
			return nil
		}
		return []narrate.Event{{Warning: true, Reason: is.Reason, Note: is.Message}}
	case was == nil || was.Status != is.Status || before.Revision != after.Revision:
		return []narrate.Event{{Reason: is.Reason, Note: fmt.Sprintf("revision %s decides", after.Revision)}}
	}
	return nil
}
