package engine

import (
	"cmp"
	"context"
	"slices"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// Violations are the findings for which one policy would refuse an object, whatever its
// action.
type Violations struct {
	// Findings are the reasons why it would deny the object, or exclude the target
	// that the object runs on, or every target that it could run on. Empty when the
	// policy has none.
	Findings []Finding
	// Err is the reason why the policy could not be evaluated; nil when it was.
	Err error
}

// Violations evaluates each policy of the question's type by itself, for an object that
// exists. Policies that do not match, or are left out, are not in the result.
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

// Violations evaluates the draft for an object that exists. matches is false when the
// draft does not match the object.
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

// violations returns the reasons why an existing object may not be as it is: the
// policy denies it, or excludes the target that it runs on. An object without a
// target is in violation when the policy excludes every target it could run on.
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
