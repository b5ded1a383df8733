package engine

import (
	"cmp"
	"context"
	"slices"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// Refusal is what one policy would refuse, whatever its action.
type Refusal struct {
	// Findings why it would deny the object, or exclude the target that it runs
	// on. Empty when it would not.
	Findings []Finding
	// Err says why the policy could not be evaluated; nil when it was.
	Err error
}

// Refusals asks each policy of the question's type, by itself, whether it would
// refuse what exists. Those that do not match, or are left out, are not in the
// answer.
func (e *Engine) Refusals(ctx context.Context, q Question, without map[string]bool) map[string]Refusal {
	var policies []*compiled
	for _, entry := range e.current.Load().asked[q.Type] {
		if entry.serving != nil && !without[entry.serving.name] {
			policies = append(policies, entry.serving)
		}
	}
	return e.refusals(ctx, q, policies...)
}

// Trial is a policy that is not in force.
type Trial struct {
	engine *Engine
	policy *compiled
}

// Type of the questions it can be asked.
func (t *Trial) Type() policyv1alpha1.PolicyType { return t.policy.spec.Type }

// Refusal asks it whether it would refuse what exists. asked is false when it
// does not match.
func (t *Trial) Refusal(ctx context.Context, q Question) (refusal Refusal, asked bool) {
	refusal, asked = t.engine.refusals(ctx, q, t.policy)[t.policy.name]
	return refusal, asked
}

func (e *Engine) refusals(ctx context.Context, q Question, policies ...*compiled) map[string]Refusal {
	if q.Selector != nil {
		q.Targets = selected(q.Targets, q.Selector)
	}
	about := subjectOf(q)
	policies = slices.DeleteFunc(policies, func(policy *compiled) bool { return !policy.matches.match(about) })
	if len(policies) == 0 {
		return nil
	}
	fields, now := e.fields(q), e.options.Now()
	refusals := make(map[string]Refusal, len(policies))
	for _, policy := range policies {
		out, err := e.ask(ctx, policy, fields, now, tracer{})
		if err != nil {
			refusals[policy.name] = Refusal{Err: err}
			continue
		}
		out.unmet(policy, q.Targets)
		findings := out.deny
		for _, f := range out.exclude {
			if f.Target == q.Application.Target {
				findings = append(findings, f)
			}
		}
		slices.SortFunc(findings, func(a, b Finding) int {
			return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
		})
		refusals[policy.name] = Refusal{Findings: findings}
	}
	return refusals
}
