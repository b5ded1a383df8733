package whatif

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// Inspection is what one policy says of what exists.
type Inspection struct {
	// Asked is how many objects it was asked about.
	Asked int
	// Violations are those that it would refuse.
	Violations []Violation
}

// Violation is an object that a policy would refuse.
type Violation struct {
	// Object as Title has it.
	Object string
	engine.Finding
}

// Audit asks every policy, by name, about objects that exist. A policy would
// refuse one that it denies, and one that it keeps off the target it is on, or
// off all there are.
func Audit(ctx context.Context, e *engine.Engine, w *World, objects ...*unstructured.Unstructured) (map[string]*Inspection, error) {
	standing := *w
	standing.Objects = nil // nothing is updated
	cases, err := Cases(&standing, input.Request{Operation: decisions.AuditOperation}, objects...)
	if err != nil {
		return nil, err
	}
	out := map[string]*Inspection{}
	for _, c := range cases {
		if c.Question.Type == "" {
			continue
		}
		d := e.Decide(ctx, c.Question)
		for _, evaluation := range d.Evaluations {
			if out[evaluation.Policy] == nil {
				out[evaluation.Policy] = &Inspection{}
			}
			found := out[evaluation.Policy]
			found.Asked++
			if refusal, would := refuses(evaluation.Policy, d, c.Question); would {
				found.Violations = append(found.Violations, Violation{Object: Title(c.Object), Finding: refusal})
			}
		}
	}
	return out, nil
}

// refuses is the first of the reasons why a policy would refuse what is asked.
func refuses(policy string, d *engine.Decision, q engine.Question) (engine.Finding, bool) {
	its := func(f engine.Finding) bool { return f.Policy == policy }
	if i := slices.IndexFunc(d.Denied, its); i >= 0 {
		return d.Denied[i], true
	}
	i := slices.IndexFunc(d.Excluded, its)
	if i < 0 {
		return engine.Finding{}, false
	}
	for _, target := range q.Targets {
		eligible := !slices.ContainsFunc(d.Excluded, func(f engine.Finding) bool { return its(f) && f.Target == target.Name })
		if eligible && (q.Selector == nil || q.Selector.Matches(labels.Set(target.Labels))) {
			return engine.Finding{}, false
		}
	}
	return d.Excluded[i], true
}
