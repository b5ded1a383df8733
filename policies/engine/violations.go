package engine

import (
	"cmp"
	"context"
	"slices"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// Violations are the findings of one policy against an existing object, for any action.
type Violations struct {
	// Findings are the reasons of the policy to deny the object, or to exclude its
	// target. For an object without a target they exclude every possible target.
	Findings []Finding
	// Err is the reason why the evaluation failed; nil if it did not.
	Err error
}

// Violations evaluates each policy of the question's type by itself, for an existing
// object. The result contains no policies that do not match, and none of without.
func (e *Engine) Violations(ctx context.Context, q Question, without map[string]bool) map[string]Violations {
	var policies []*compiled
	for _, entry := range e.current.Load().byType[q.Type] {
		if entry.serving != nil && !without[entry.serving.name] {
			policies = append(policies, entry.serving)
		}
	}
	return e.violations(ctx, q, policies...)
}

// Draft is a policy that is not in force.
type Draft struct {
	engine *Engine
	policy *compiled
}

// Type of the policy.
func (t *Draft) Type() policyv1alpha1.PolicyType { return t.policy.spec.Type }

// Violations evaluates the draft for an existing object. matches is false if the draft
// does not match the object.
func (t *Draft) Violations(ctx context.Context, q Question) (found Violations, matches bool) {
	found, matches = t.engine.violations(ctx, q, t.policy)[t.policy.name]
	return found, matches
}

func (e *Engine) violations(ctx context.Context, q Question, policies ...*compiled) map[string]Violations {
	if q.Selector != nil {
		q.Targets = matchingTargets(q.Targets, q.Selector)
	}
	subject := subjectOf(q)
	policies = slices.DeleteFunc(policies, func(policy *compiled) bool { return !policy.matches.match(subject) })
	if len(policies) == 0 {
		return nil
	}
	in := e.newDocument(q)
	byPolicy := make(map[string]Violations, len(policies))
	for _, policy := range policies {
		out, err := e.evaluate(ctx, policy, in, tracer{})
		if err != nil {
			byPolicy[policy.name] = Violations{Err: err}
			continue
		}
		out.excludeUnmet(policy, q.Targets)
		byPolicy[policy.name] = Violations{Findings: out.violations(q)}
	}
	return byPolicy
}

// violations returns the reasons of a policy against an existing object: the policy
// denies the object, or excludes its target. An object without a target is in violation
// if the policy excludes every possible target.
func (o *outputs) violations(q Question) []Finding {
	excluded := map[string]bool{}
	for _, f := range o.exclude {
		excluded[f.Target] = true
	}
	placed := q.Application.Target != ""
	nowhere := !placed && len(q.Targets) > 0
	candidates := map[string]bool{q.Application.Target: placed}
	for _, target := range q.Targets {
		candidates[target.Name] = true
		nowhere = nowhere && excluded[target.Name]
	}
	findings := slices.Clone(o.deny)
	for _, f := range o.exclude {
		if candidates[f.Target] && (placed || nowhere) {
			findings = append(findings, f)
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Message, b.Message))
	})
	return findings
}
