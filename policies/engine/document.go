package engine

import (
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

// Input returns the document that a policy with the parameters sees of a
// question, as a value of package input.
func Input(q Question, parameters map[string]any) any {
	if q.Type == policyv1alpha1.Publish {
		return input.NewPublish(q.Question, parameters)
	}
	if q.Selector != nil {
		q.Targets = selected(q.Targets, q.Selector)
	}
	return input.NewScheduling(q.Question, parameters)
}
