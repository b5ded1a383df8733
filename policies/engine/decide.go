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
	"github.com/portico-io/portico/policies/reuse"
)

// Question describes a request, and the policies to evaluate for it.
type Question struct {
	// Type is the type of the evaluated policies: Scheduling or Publish.
	Type policyv1alpha1.PolicyType
	// Question is the content of the input.
	input.Question
	// Selector selects the targets that policies see; nil selects all. The time of a
	// policy grows with the number of targets, and the time of a selector hardly does.
	Selector labels.Selector
	// Now is the time that policies see; the engine's clock if zero.
	Now time.Time
	// Reuse allows the outputs of an earlier evaluation of a policy, if everything that
	// the policy reads is unchanged. Failures are not reused.
	Reuse bool
	// Failed are policies that failed for other objects of the same application. They
	// are not evaluated, and count as failed for this object, too.
	Failed map[string]error
	// Trace returns the writer for the steps of a policy's evaluation. The steps are
	// those that led to a false expression, or all with TraceAll. Tracing is slow.
	// Default: no trace.
	Trace    func(policy string) io.Writer
	TraceAll bool
}

// Decide evaluates every policy of the type that matches. Each policy has its own time
// limit, and all share the deadline of the context. The failurePolicy applies to a
// policy that cannot be evaluated in time.
func (e *Engine) Decide(ctx context.Context, q Question) *Decision {
	s := e.current.Load()
	d := &Decision{Revision: s.revision}
	if q.Selector != nil {
		q.Targets = matchingTargets(q.Targets, q.Selector)
	}
	subject := subjectOf(q)
	in := e.newDocument(q)
	for _, entry := range s.byType[q.Type] {
		switch policy := entry.serving; {
		case policy == nil:
			d.addBroken(entry, subject)
		case policy.matches.match(subject):
			d.addEvaluation(policy, in, e.outputsOf(ctx, policy, in))
		}
	}
	d.sort()
	return d
}

// evaluationResult is the result of the evaluation of one policy.
type evaluationResult struct {
	out      *outputs
	err      error
	duration time.Duration
	reused   bool
}

// outputsOf evaluates a policy, or reuses the outputs of an earlier evaluation.
func (e *Engine) outputsOf(ctx context.Context, policy *compiled, in *document) evaluationResult {
	if err := in.question.Failed[policy.name]; err != nil {
		return evaluationResult{err: err, reused: true}
	}
	var key reuse.Digest
	keep := in.question.Reuse && in.question.Trace == nil
	if keep {
		if key, keep = policy.cacheKey(in); keep {
			if out, ok := e.cache.Get(key); ok {
				return evaluationResult{out: out.clip(), reused: true}
			}
		}
	}
	started := time.Now()
	out, err := e.evaluate(ctx, policy, in, in.question.tracer(policy.name))
	if err == nil && keep {
		e.cache.Put(key, out.clip())
	}
	return evaluationResult{out: out, err: err, duration: time.Since(started)}
}

// addEvaluation adds the result of one policy to the decision.
func (d *Decision) addEvaluation(policy *compiled, in *document, result evaluationResult) {
	evaluation := Evaluation{
		Policy: policy.name, Revision: policy.revision, Action: policy.spec.Action,
		Duration: result.duration, Err: result.err, Reused: result.reused,
	}
	if result.err != nil {
		f := failureFinding(policy.name, result.err)
		evaluation.Code = f.Code
		d.addFailure(f, policy.spec.Action, policy.spec.FailurePolicy)
	} else {
		out := result.out
		out.require = out.excludeUnmet(policy, in.question.Targets)
		d.addOutputs(policy.name, policy.spec.Action, policy.weight, out)
		evaluation.Findings = len(out.deny) + len(out.warn) + len(out.exclude)
	}
	d.Evaluations = append(d.Evaluations, evaluation)
}

// excludeUnmet excludes the targets without a label that the policy requires, and
// returns the requirements.
func (o *outputs) excludeUnmet(policy *compiled, targets []*workloadv1alpha1.KubernetesTarget) []Requirement {
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

func matchingTargets(targets []*workloadv1alpha1.KubernetesTarget, selector labels.Selector) []*workloadv1alpha1.KubernetesTarget {
	var out []*workloadv1alpha1.KubernetesTarget
	for _, target := range targets {
		if selector.Matches(labels.Set(target.Labels)) {
			out = append(out, target)
		}
	}
	return out
}

func failureFinding(policy string, err error) Finding {
	f := Finding{Policy: policy, Code: CodePolicyError, Message: "the policy could not be evaluated: " + oneLine(err.Error())}
	if errors.Is(err, errTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		f.Code = CodePolicyTimeout
	}
	return f
}

// addBroken adds the result of a policy without a form that works.
func (d *Decision) addBroken(entry *entry, about subject) {
	spec := *entry.desired.Spec.DeepCopy()
	setDefaults(&spec)
	// A match that cannot be read may match every object.
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
	d.addFailure(Finding{Policy: entry.desired.Name, Code: CodePolicyBroken, Message: err.Error()}, spec.Action, spec.FailurePolicy)
	d.Evaluations = append(d.Evaluations, Evaluation{
		Policy: entry.desired.Name, Revision: entry.report.Revision, Action: spec.Action, Err: err, Code: CodePolicyBroken,
	})
}

func (c *compiled) evaluate(ctx context.Context, fields [][2]*ast.Term, now time.Time, printer print.Hook, trace tracer) (a evaluationResult) {
	defer func() {
		if r := recover(); r != nil {
			a = evaluationResult{err: fmt.Errorf("evaluating panicked: %v", r)}
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
		// The trace has no index, so that it shows the rules that the index leaves out.
		options = append(options, rego.EvalQueryTracer(steps), rego.EvalRuleIndexing(false), rego.EvalEarlyExit(false))
		// After the timeout the writer may be closed.
		defer func() {
			if ctx.Err() == nil {
				trace.write(*steps)
			}
		}()
	}
	results, err := c.query.Eval(ctx, options...)
	if err != nil {
		return evaluationResult{err: err}
	}
	if len(results) != 1 || len(results[0].Expressions) != 1 {
		return evaluationResult{err: errors.New("the policy has no answer")}
	}
	out, err := readOutputs(c.name, results[0].Expressions[0].Value)
	return evaluationResult{out: out, err: err}
}

// tracer writes the steps of an evaluation.
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
		return step.Location == nil || step.Location.File == "" // a step of the prepared query, which evaluates all rules
	})
	topdown.PrettyTraceWithOpts(t.to, steps, topdown.PrettyTraceOptions{Locations: true, ExprVariables: true})
}

// printer writes the output of print calls, with the policy and the place.
func (e *Engine) printer(policy string) print.Hook {
	if e.options.Print == nil {
		return nil
	}
	return &printHook{engine: e, policy: policy}
}

type printHook struct {
	engine *Engine
	policy string
}

// Print implements print.Hook.
func (p *printHook) Print(c print.Context, text string) error {
	p.engine.printing.Lock()
	defer p.engine.printing.Unlock()
	_, err := fmt.Fprintf(p.engine.options.Print, "policy %s: %s:%d: %s\n", p.policy, c.Location.File, c.Location.Row, text)
	return err
}
