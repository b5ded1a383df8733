package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
)

// describe sets a policy's status from its state in the engine. shipped is the revision
// of the policy that this version of Portico ships, "" if it ships none.
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
		out.Message = fmt.Sprintf("%s pass, and cover %d %% of the lines", tests.Summary, tests.Coverage)
	}
	return out
}

func ready(policy *policyv1alpha1.Policy, state engine.State) metav1.Condition {
	out := metav1.Condition{Type: policyv1alpha1.Ready, Status: metav1.ConditionFalse}
	switch {
	case state.OK():
		out.Status, out.Reason = metav1.ConditionTrue, policyv1alpha1.ReasonActive
		out.Message = "the policy in spec is in force"
		if policy.Spec.Type == policyv1alpha1.Library {
			out.Message = "other policies can import the library in spec"
		}
	case state.Serving != "":
		out.Reason = policyv1alpha1.ReasonLastGoodServing
		out.Message = fmt.Sprintf("revision %s is in force, because the policy in spec does not work: %s", state.Serving, problems(state))
	default:
		out.Reason = policyv1alpha1.ReasonBroken
		out.Message = fmt.Sprintf("no revision works, and failurePolicy %s applies: %s", policy.Spec.FailurePolicy, problems(state))
		if policy.Spec.Type == policyv1alpha1.Library {
			out.Message = "no revision works, and the policies that import it do not work: " + problems(state)
		}
	}
	return out
}

func customized(policy *policyv1alpha1.Policy, revision, shipped string) metav1.Condition {
	out := metav1.Condition{Type: policyv1alpha1.Customized, Status: metav1.ConditionFalse, Reason: policyv1alpha1.ReasonAsShipped, Message: "it equals the policy that this version of Portico ships"}
	switch {
	case policy.Annotations[policyv1alpha1.EmbeddedRevisionAnnotation] != revision:
		out.Status, out.Reason = metav1.ConditionTrue, policyv1alpha1.ReasonEdited
		out.Message = fmt.Sprintf("it was edited, so upgrades do not change it; this version of Portico ships revision %s, and creates it again if you delete the policy", shipped)
	case revision != shipped:
		out.Message = "it equals the policy of an earlier version of Portico, and is being upgraded"
	}
	return out
}

// maxProblems limits the problems in a condition, in bytes. Admission lists all of
// them.
const maxProblems = 4096

func problems(state engine.State) string {
	if state.OK() {
		return ""
	}
	return policies.Shorten(state.Err().Error(), maxProblems)
}

// statusEvents returns the events of a changed status.
func statusEvents(before, after policyv1alpha1.PolicyStatus) []events.Event {
	was := meta.FindStatusCondition(before.Conditions, policyv1alpha1.Ready)
	is := meta.FindStatusCondition(after.Conditions, policyv1alpha1.Ready)
	switch {
	case is == nil:
		return nil
	case is.Status != metav1.ConditionTrue:
		if was != nil && was.Reason == is.Reason && was.Message == is.Message {
			return nil
		}
		return []events.Event{{Warning: true, Reason: is.Reason, Note: is.Message}}
	case was == nil || was.Status != is.Status || before.Revision != after.Revision:
		return []events.Event{{Reason: is.Reason, Note: fmt.Sprintf("revision %s is in force", after.Revision)}}
	}
	return nil
}
