package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/lineage"
	"github.com/open-policy-agent/opa/v1/topdown/print"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

// Question is what is asked, and of which policies.
type Question struct {
	// Type of the policies that are asked: Scheduling or Publish.
	Type policyv1alpha1.PolicyType
	// Question is what they see.
	input.Question
	// Selector narrows the targets before any policy sees them; nil does not.
	// A policy's cost grows with the targets it sees, a selector's hardly.
	Selector labels.Selector
	// Trace says, when it is not nil, who is told how a policy came to what it
	// says: by the steps that led to something that does not hold, or by all with
	// TraceAll. It is slow.
	Trace    func(policy string) io.Writer
	TraceAll bool
}

// Decide asks every policy of the type that matches. Each has its own time
// limit, and all share the context's deadline. A policy that cannot be
// evaluated in time counts as its failurePolicy says, by name.
func (e *Engine) Decide(ctx context.Context, q Question) *Decision {
	s := e.current.Load()
	d := &Decision{Revision: s.revision}
	if q.Selector != nil {
		q.Targets = selected(q.Targets, q.Selector)
	}
	about := subjectOf(q)
	now := e.options.Now()
	var fields [][2]*ast.Term
	for _, entry := range s.asked[q.Type] {
		policy := entry.serving
		if policy == nil {
			d.broken(entry, about)
			continue
		}
		if !policy.matches.match(about) {
			continue
		}
		if fields == nil {
			fields = e.fields(q)
		}
		started := time.Now()
		out, err := e.ask(ctx, policy, fields, now, q.tracer(policy.name))
		evaluation := Evaluation{
			Policy: policy.name, Revision: policy.revision, Action: policy.spec.Action,
			Duration: time.Since(started), Err: err,
		}
		if err != nil {
			why := failure(policy.name, err)
			evaluation.Code = why.Code
			d.fail(why, policy.spec.Action, policy.spec.FailurePolicy)
		} else {
			out.require = out.unmet(policy, q.Targets)
			d.add(policy.name, policy.spec.Action, policy.weight, out)
			evaluation.Findings = len(out.deny) + len(out.warn) + len(out.exclude)
		}
		d.Evaluations = append(d.Evaluations, evaluation)
	}
	d.sort()
	return d
}

// unmet excludes the targets that lack what the policy requires, and returns
// its requirements.
func (o *outputs) unmet(policy *compiled, targets []*workloadv1alpha1.KubernetesTarget) []Requirement {
	for _, r := range o.require {
		for _, target := range targets {
			if !r.Matches(labels.Set(target.Labels)) {
				o.exclude = append(o.exclude, Finding{
					Policy: policy.name, Code: CodeRequired, Target: target.Name, Message: "wants " + r.String(),
				})
			}
		}
	}
	return o.require
}

func selected(targets []*workloadv1alpha1.KubernetesTarget, selector labels.Selector) []*workloadv1alpha1.KubernetesTarget {
	var out []*workloadv1alpha1.KubernetesTarget
	for _, target := range targets {
		if selector.Matches(labels.Set(target.Labels)) {
			out = append(out, target)
		}
	}
	return out
}

func failure(policy string, err error) Finding {
	f := Finding{Policy: policy, Code: CodePolicyError, Message: "the policy could not be evaluated: " + oneLine(err.Error())}
	if errors.Is(err, errTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		f.Code = CodePolicyTimeout
	}
	return f
}

// broken joins what follows from a policy that was never good.
func (d *Decision) broken(entry *entry, about subject) {
	spec := *entry.want.Spec.DeepCopy()
	setDefaults(&spec)
	// Nobody knows what a match means that cannot be read; it may be all.
	if matches, err := newMatcher(spec.Match); err == nil && !matches.match(about) {
		return
	}
	why := "it has no form that works"
	if len(entry.report.Problems) > 0 {
		p := entry.report.Problems[0]
		why = fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
		if p.File == "" {
			why = p.Message
		}
	}
	err := errors.New("the policy is broken: " + oneLine(why))
	d.fail(Finding{Policy: entry.want.Name, Code: CodePolicyBroken, Message: err.Error()}, spec.Action, spec.FailurePolicy)
	d.Evaluations = append(d.Evaluations, Evaluation{
		Policy: entry.want.Name, Revision: entry.report.Revision, Action: spec.Action, Err: err, Code: CodePolicyBroken,
	})
}

// fields converts all of the input that policies share.
func (e *Engine) fields(q Question) [][2]*ast.Term {
	if q.Type == policyv1alpha1.Publish {
		return input.Fields(input.NewPublish(q.Question, nil), "parameters")
	}
	targets := e.candidates.terms(input.Sorted(q.Targets))
	q.Targets = nil
	fields := input.Fields(input.NewScheduling(q.Question, nil), "targets", "parameters")
	return append(fields, [2]*ast.Term{ast.InternedTerm("targets"), ast.ArrayTerm(targets...)})
}

type answer struct {
	out *outputs
	err error
}

func (c *compiled) evaluate(ctx context.Context, fields [][2]*ast.Term, now time.Time, printer print.Hook, trace tracer) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			a = answer{err: fmt.Errorf("evaluating panicked: %v", r)}
		}
	}()
	document := make([][2]*ast.Term, 0, len(fields)+1)
	document = append(append(document, fields...), [2]*ast.Term{ast.InternedTerm("parameters"), c.parameters})
	options := []rego.EvalOption{rego.EvalParsedInput(ast.NewObject(document...)), rego.EvalTime(now)}
	if printer != nil {
		options = append(options, rego.EvalPrintHook(printer))
	}
	if trace.to != nil {
		steps := topdown.NewBufferTracer()
		// Rules that an index rules out are what their author wonders about.
		options = append(options, rego.EvalQueryTracer(steps), rego.EvalRuleIndexing(false), rego.EvalEarlyExit(false))
		// Not after the time is up: the writer may be gone by then.
		defer func() {
			if ctx.Err() == nil {
				trace.write(*steps)
			}
		}()
	}
	results, err := c.query.Eval(ctx, options...)
	if err != nil {
		return answer{err: err}
	}
	if len(results) != 1 || len(results[0].Expressions) != 1 {
		return answer{err: errors.New("the policy has no answer")}
	}
	out, err := readOutputs(c.name, results[0].Expressions[0].Value)
	return answer{out: out, err: err}
}

// tracer is told the steps of an evaluation.
type tracer struct {
	to  io.Writer
	all bool
}

func (q Question) tracer(policy string) tracer {
	if q.Trace == nil {
		return tracer{}
	}
	return tracer{to: q.Trace(policy), all: q.TraceAll}
}

func (t tracer) write(steps []*topdown.Event) {
	if t.all {
		steps = lineage.Full(steps)
	} else {
		steps = lineage.Fails(steps)
	}
	steps = slices.DeleteFunc(steps, func(step *topdown.Event) bool {
		return step.Location == nil || step.Location.File == "" // ours, that asks for all rules
	})
	topdown.PrettyTraceWithOpts(t.to, steps, topdown.PrettyTraceOptions{Locations: true, ExprVariables: true})
}

// printer passes on what a policy prints, with its name and the place.
func (e *Engine) printer(policy string) print.Hook {
	if e.options.Print == nil {
		return nil
	}
	return &printed{engine: e, policy: policy}
}

type printed struct {
	engine *Engine
	policy string
}

// Print is called by Rego.
func (p *printed) Print(c print.Context, text string) error {
	p.engine.printing.Lock()
	defer p.engine.printing.Unlock()
	_, err := fmt.Fprintf(p.engine.options.Print, "policy %s: %s:%d: %s\n", p.policy, c.Location.File, c.Location.Row, text)
	return err
}
