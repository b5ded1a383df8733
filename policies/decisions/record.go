package decisions

import (
	"cmp"
	"slices"

	"k8s.io/klog/v2"

	"github.com/portico-io/portico/policies/engine"
)

// Result is what one policy's part in a decision comes to, from what stops a
// request to what nobody notices.
type Result string

// The results, as they are in the log, in metrics and in audit annotations.
const (
	Error   Result = "error" // it could not be evaluated
	Deny    Result = "deny"
	Exclude Result = "exclude"
	Warn    Result = "warn"
	Audit   Result = "audit" // it found something, which is only recorded
	Allow   Result = "allow"
)

// Part is one policy's part in a decision.
type Part struct {
	engine.Evaluation
	Result Result
	// Codes of what it found, in order.
	Codes []string
}

// Parts tells a decision apart by policy.
func Parts(d *engine.Decision) []Part {
	parts := make([]Part, 0, len(d.Evaluations))
	for _, evaluation := range d.Evaluations {
		part := Part{Evaluation: evaluation, Result: Allow}
		for _, said := range []struct {
			result   Result
			findings []engine.Finding
		}{{Deny, d.Denied}, {Exclude, d.Excluded}, {Warn, d.Warnings}, {Audit, d.Recorded}} {
			for _, f := range said.findings {
				if f.Policy != evaluation.Policy {
					continue
				}
				if part.Result == Allow {
					part.Result = said.result
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

// record writes down one decision. The log says who asked for what and what came
// of it, and never what was in it.
func (a *Asker) record(why Occasion, q engine.Question, d *engine.Decision) {
	for _, part := range Parts(d) {
		a.metrics.count(q, d, part)
		log := why.Log
		if part.Result == Allow {
			log = log.V(2)
		}
		if !log.Enabled() {
			continue
		}
		about := subjectOf(q)
		values := []any{
			"decision", why.ID, "asks", why.Asks, "policy", part.Policy, "revision", part.Revision, "action", part.Action,
			"result", part.Result, "codes", part.Codes, "user", q.Request.User.Username, "operation", q.Request.Operation,
			"kind", about.kind, "object", about.ref, "target", about.target,
			"latency", part.Duration.String(), "dryRun", q.Request.DryRun,
		}
		if part.Err != nil {
			values = append(values, "why", part.Err.Error())
		}
		log.Info("Policy decided", values...)
	}
}

type subject struct {
	kind, target string
	ref          klog.ObjectRef
}

func subjectOf(q engine.Question) subject {
	s := subject{kind: q.Request.Kind.Kind, target: q.Application.Target}
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
