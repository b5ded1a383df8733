package simulate

import (
	"context"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
)

// AuditResult is the result of one policy for all existing objects.
type AuditResult struct {
	// Evaluated is the number of objects for which the policy was evaluated.
	Evaluated int
	// Failed is the number of failed evaluations. They are no violations.
	Failed int
	// Error is the first of these errors.
	Error string
	// Violations is the number of objects that the policy would deny.
	Violations int
	// Sample holds the first violations, by namespace and name.
	Sample []Violation
}

// Violation is an existing object that a policy would deny. The policy denies the
// object itself, or excludes its target. For an object without a target it excludes
// every target that the selector of the application matches. See engine.Violations.
type Violation struct {
	Subject
	engine.Finding
}

// maxFailures is the number of failed evaluations after which an audit skips a policy.
// Otherwise a policy that always reaches its time limit would make the audit slow.
const maxFailures = 10

// Audit evaluates every active policy for all existing objects, with any action, and
// returns the results by policy. It keeps at most maxSample violations for each policy;
// 0 keeps all. It returns nil if ctx ends before the audit.
func Audit(ctx context.Context, e *engine.Engine, s *Snapshot, maxSample int) map[string]*AuditResult {
	results := map[string]*AuditResult{}
	for _, state := range e.Policies() {
		if state.Type != policyv1alpha1.Library && state.Serving != "" {
			results[state.Policy] = &AuditResult{}
		}
	}
	skip := map[string]bool{}
	for _, t := range []policyv1alpha1.PolicyType{policyv1alpha1.Scheduling, policyv1alpha1.Publish} {
		for _, subject := range s.Subjects(t) {
			for name, found := range e.Violations(ctx, subject.Question, skip) {
				if result := results[name]; result != nil {
					result.add(subject, found, maxSample)
					skip[name] = result.Failed >= maxFailures
				}
			}
			if ctx.Err() != nil {
				return nil
			}
		}
	}
	return results
}

func (r *AuditResult) add(subject Subject, found engine.Violations, maxSample int) {
	r.Evaluated++
	if found.Err != nil {
		if r.Failed++; r.Failed == 1 {
			r.Error = found.Err.Error()
		}
		return
	}
	if len(found.Findings) == 0 {
		return
	}
	if r.Violations++; maxSample == 0 || r.Violations <= maxSample {
		r.Sample = append(r.Sample, Violation{Subject: subject, Finding: found.Findings[0]})
	}
}

// MaxStatusSample is the number of violations that the status of a policy shows.
const MaxStatusSample = 20

// maxStatusMessage is the length to which Status shortens a message.
const maxStatusMessage = 500

// Status returns the result as the status of a Policy shows it, without LastRun.
func (r *AuditResult) Status() *policyv1alpha1.PolicyAudit {
	out := &policyv1alpha1.PolicyAudit{Evaluated: int32(r.Evaluated), Violations: int32(r.Violations)} //nolint:gosec // No hub has two billion objects.
	for _, v := range r.Sample[:min(len(r.Sample), MaxStatusSample)] {
		out.Sample = append(out.Sample, policyv1alpha1.PolicyViolation{
			Kind: v.Kind, Namespace: v.Namespace, Name: v.Name,
			Code: v.Code, Message: policies.Shorten(v.Message, maxStatusMessage),
		})
	}
	return out
}

// SameAudit tells whether two audits found the same. It ignores LastRun.
func SameAudit(a, b *policyv1alpha1.PolicyAudit) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Evaluated == b.Evaluated && a.Violations == b.Violations && slices.Equal(a.Sample, b.Sample)
}

// verbs describe the effect of each action on a violation.
var verbs = map[policyv1alpha1.Action]string{
	policyv1alpha1.Deny: "would deny", policyv1alpha1.Warn: "would warn of", policyv1alpha1.Audit: "would record",
}

// Impact returns one sentence about the existing objects that a draft of a policy would
// deny, or "" if there are none. Objects that are not evaluated before ctx ends do not
// count.
func Impact(ctx context.Context, draft *engine.Draft, action policyv1alpha1.Action, s *Snapshot) string {
	if action == "" {
		action = policyv1alpha1.Deny
	}
	result, complete := AuditResult{}, true
	for _, subject := range s.Subjects(draft.Type()) {
		found, evaluated := draft.Violations(ctx, subject.Question)
		if ctx.Err() != nil {
			complete = false
			break
		}
		if evaluated {
			result.add(subject, found, 1)
		}
	}
	if result.Violations == 0 {
		return ""
	}
	first := ""
	if !complete {
		first = "the first "
	}
	example := result.Sample[0]
	return fmt.Sprintf("%s %d of %s%d, e.g. %s (%s: %s)",
		verbs[action], result.Violations, first, result.Evaluated, example.Subject, example.Code, example.Message)
}
