package decisions

import (
	"cmp"
	"slices"

	"k8s.io/klog/v2"

	"github.com/portico-io/portico/policies/engine"
)

// Result is the worst of one policy's findings in a decision.
type Result string

// The results, as they are in the log, in metrics and in audit annotations.
const (
	Error   Result = "error" // the evaluation failed
	Deny    Result = "deny"
	Exclude Result = "exclude"
	Warn    Result = "warn"
	Audit   Result = "audit" // a finding that is only recorded
	Allow   Result = "allow"
)

// PolicyResult is one policy's part in a decision.
type PolicyResult struct {
	engine.Evaluation
	Result Result
	// Codes of its findings, in order.
	Codes []string
}

// ResultsByPolicy splits a decision by policy.
func ResultsByPolicy(d *engine.Decision) []PolicyResult {
	parts := make([]PolicyResult, 0, len(d.Evaluations))
	for _, evaluation := range d.Evaluations {
		part := PolicyResult{Evaluation: evaluation, Result: Allow}
		for _, list := range []struct {
			result   Result
			findings []engine.Finding
		}{{Deny, d.Denied}, {Exclude, d.Excluded}, {Warn, d.Warnings}, {Audit, d.Recorded}} {
			for _, f := range list.findings {
				if f.Policy != evaluation.Policy {
					continue
				}
				if part.Result == Allow {
					part.Result = list.result
				}
				part.Codes = append(part.Codes, f.Code)
			}
		}
		if evaluation.Err != nil {
			part.Result = Error
		}
		slices.Sort(part.Codes)
		part.Codes = slices.Compact(part.Codes)
		parts = append(parts, part)
	}
	return parts
}

// record writes one decision to the log and counts it in metrics. The log names the
// user, the object and the result, and has no content of the object. A reused answer was
// recorded when it was evaluated.
func (a *Evaluator) record(caller Caller, q engine.Question, d *engine.Decision) {
	if !slices.ContainsFunc(d.Evaluations, func(e engine.Evaluation) bool { return !e.Reused }) {
		return
	}
	for _, part := range ResultsByPolicy(d) {
		if part.Reused {
			continue
		}
		a.metrics.count(q, d, part)
		log := caller.Log
		if part.Result == Allow {
			log = log.V(2)
		}
		if !log.Enabled() {
			continue
		}
		subject := logSubjectOf(q)
		values := []any{
			"decision", caller.ID, "component", caller.Component, "policy", part.Policy, "revision", part.Revision, "action", part.Action,
			"result", part.Result, "codes", part.Codes, "user", q.Request.User.Username, "operation", q.Request.Operation,
			"kind", subject.kind, "object", subject.ref, "target", subject.target,
			"latency", part.Duration.String(), "dryRun", q.Request.DryRun,
		}
		if part.Err != nil {
			values = append(values, "error", part.Err.Error())
		}
		log.Info("Policy decided", values...)
	}
}

type logSubject struct {
	kind, target string
	ref          klog.ObjectRef
}

func logSubjectOf(q engine.Question) logSubject {
	s := logSubject{kind: q.Request.Kind.Kind, target: q.Application.Target}
	name := q.Request.Name
	if q.Object != nil {
		s.kind, name = cmp.Or(s.kind, q.Object.GetKind()), cmp.Or(name, q.Object.GetName(), q.Object.GetGenerateName())
	}
	if q.Target != nil {
		s.kind, s.target, name = "KubernetesTarget", q.Target.Name, cmp.Or(name, q.Target.Name)
	}
	s.ref = klog.KRef(q.Request.Namespace, name)
	return s
}
