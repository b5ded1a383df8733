package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// Codes of findings of the engine itself.
const (
	// CodePolicyError means that the evaluation of a policy failed.
	CodePolicyError = "PolicyError"
	// CodePolicyTimeout means that the evaluation of a policy took too long.
	CodePolicyTimeout = "PolicyTimeout"
	// CodePolicyBroken means that a policy has no form that works.
	CodePolicyBroken = "PolicyBroken"
	// CodeRequired means that a target lacks a label that a policy requires.
	CodeRequired = "Required"
)

// Finding is one element of a policy's outputs.
type Finding struct {
	// Policy with the finding.
	Policy string
	// Code in one word, for machines.
	Code string
	// Message for users.
	Message string
	// Field of the object; empty for a finding about the whole object.
	Field string
	// Target of the finding; empty for a finding about the object.
	Target string
}

// String formats the finding for users: policy NAME: CODE: message (field).
func (f Finding) String() string {
	text := fmt.Sprintf("policy %s: %s: ", f.Policy, f.Code)
	if f.Target != "" {
		text += "target " + f.Target + ": "
	}
	text += f.Message
	if f.Field != "" {
		text += " (" + f.Field + ")"
	}
	return text
}

// Requirement is a label that a policy requires of a target.
type Requirement struct {
	// Policy with the requirement.
	Policy string
	// Requirement on the target's labels.
	labels.Requirement
}

// Evaluation is one policy's part in a decision.
type Evaluation struct {
	// Policy is the name, and Revision the evaluated form.
	Policy, Revision string
	Action           policyv1alpha1.Action
	// Findings is the number of findings.
	Findings int
	// Duration of the evaluation.
	Duration time.Duration
	// Err is the reason why the evaluation failed; nil if it did not.
	Err error
	// Code is the code of the finding for Err; empty without such a finding.
	Code string
	// Reused means that the policy was not evaluated: the outputs are those of an
	// earlier evaluation with the same input, or the policy is in Question.Failed.
	Reused bool
}

// Decision is the result of all policies together. Each list is sorted, so that the
// same question has the same decision.
type Decision struct {
	// Revision identifies the set of evaluated policies.
	Revision string
	// Denied are the reasons to deny the request. An empty list allows it.
	Denied []Finding
	// Warnings are for the user of the request.
	Warnings []Finding
	// Recorded are the findings of policies with action Audit. They are only recorded.
	Recorded []Finding
	// Excluded are the reasons why targets are not eligible. One target may have several.
	Excluded []Finding
	// Required are the labels of an eligible target. The candidates without them are in
	// Excluded.
	Required []Requirement
	// Scores are the scores of targets. A higher score is better. A target without a
	// score has 0.
	Scores map[string]float64
	// Evaluations are the policies that were evaluated, by name.
	Evaluations []Evaluation
}

// Allowed reports whether no policy denies the request.
func (d *Decision) Allowed() bool { return len(d.Denied) == 0 }

// Eligible reports whether no policy excludes the target.
func (d *Decision) Eligible(target string) bool {
	return !slices.ContainsFunc(d.Excluded, func(f Finding) bool { return f.Target == target })
}

// Merge joins the decisions about all objects of one request, or of one application,
// which run on one target: all findings, and the mean of the scores.
func Merge(decisions ...*Decision) *Decision {
	if len(decisions) == 1 {
		return decisions[0]
	}
	var m Merger
	var evaluations []Evaluation
	for _, d := range decisions {
		m.Add(d)
		evaluations = append(evaluations, d.Evaluations...)
	}
	out := m.Decision()
	out.Evaluations = evaluations
	return out
}

// Merger merges decisions one by one, and keeps each finding once. Its zero value is
// empty. It drops the list of evaluations, which would grow with the number of objects.
type Merger struct {
	merged   Decision
	findings [4]map[Finding]bool // of Denied, Warnings, Recorded, Excluded
	required map[string]bool
	scores   map[string]float64
	count    int
}

// Add adds a decision.
func (m *Merger) Add(d *Decision) {
	m.count++
	m.merged.Revision = d.Revision
	for i, findings := range [][]Finding{d.Denied, d.Warnings, d.Recorded, d.Excluded} {
		for _, f := range findings {
			if m.findings[i] == nil {
				m.findings[i] = map[Finding]bool{}
			}
			m.findings[i][f] = true
		}
	}
	for _, r := range d.Required {
		key := r.Policy + " " + r.String()
		if m.required == nil {
			m.required = map[string]bool{}
		}
		if !m.required[key] {
			m.required[key] = true
			m.merged.Required = append(m.merged.Required, r)
		}
	}
	for target, score := range d.Scores {
		if m.scores == nil {
			m.scores = map[string]float64{}
		}
		m.scores[target] += score
	}
}

// Decision returns the merged decision.
func (m *Merger) Decision() *Decision {
	out := m.merged
	out.Required = slices.Clone(out.Required)
	for i, list := range []*[]Finding{&out.Denied, &out.Warnings, &out.Recorded, &out.Excluded} {
		*list = slices.Collect(maps.Keys(m.findings[i]))
	}
	for target, sum := range m.scores {
		if out.Scores == nil {
			out.Scores = map[string]float64{}
		}
		out.Scores[target] = sum / float64(m.count)
	}
	out.sort()
	return &out
}

// outputs are the decoded and validated results of one policy.
type outputs struct {
	deny, warn, exclude []Finding
	require             []Requirement
	score               map[string]float64
}

// addOutputs adds the outputs of one policy to the decision, according to its action.
func (d *Decision) addOutputs(policy string, action policyv1alpha1.Action, weight float64, out *outputs) {
	switch action {
	case policyv1alpha1.Audit:
		d.Recorded = append(d.Recorded, out.all()...)
	case policyv1alpha1.Warn:
		d.Warnings = append(d.Warnings, out.all()...)
	default:
		d.Denied = append(d.Denied, out.deny...)
		d.Warnings = append(d.Warnings, out.warn...)
		d.Excluded = append(d.Excluded, out.exclude...)
		for _, r := range out.require {
			r.Policy = policy
			d.Required = append(d.Required, r)
		}
		for target, score := range out.score {
			if d.Scores == nil {
				d.Scores = map[string]float64{}
			}
			d.Scores[target] += weight * score
		}
	}
}

// addFailure adds the result of a policy whose evaluation failed. None of its outputs
// count, because a part of them could allow an object that the rest denies.
func (d *Decision) addFailure(f Finding, action policyv1alpha1.Action, failurePolicy policyv1alpha1.FailurePolicy) {
	switch {
	case action == policyv1alpha1.Audit:
		d.Recorded = append(d.Recorded, f)
	case action == policyv1alpha1.Warn, failurePolicy == policyv1alpha1.Ignore:
		d.Warnings = append(d.Warnings, f)
	default:
		d.Denied = append(d.Denied, f)
	}
}

// all returns all findings of a policy that only warns or records.
func (o *outputs) all() []Finding {
	return slices.Concat(o.deny, o.warn, o.exclude)
}

func (d *Decision) sort() {
	for _, findings := range []*[]Finding{&d.Denied, &d.Warnings, &d.Recorded, &d.Excluded} {
		slices.SortFunc(*findings, func(a, b Finding) int {
			return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Target, b.Target),
				cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
		})
		*findings = slices.Compact(*findings)
	}
	slices.SortStableFunc(d.Required, func(a, b Requirement) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.String(), b.String()))
	})
}

// readOutputs decodes the result of Rego. Types were checked at compilation, except for
// values of type any, which are checked now.
func readOutputs(policy string, value any) (*outputs, error) {
	answers, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the policy answered %T, not an object", value)
	}
	out := &outputs{}
	for _, list := range []struct {
		name string
		to   *[]Finding
	}{{"deny", &out.deny}, {"warn", &out.warn}, {"exclude", &out.exclude}} {
		elements, _ := answers[list.name].([]any)
		for _, element := range elements {
			f, err := readFinding(list.name, element)
			if err != nil {
				return nil, err
			}
			f.Policy = policy
			*list.to = append(*list.to, f)
		}
	}
	elements, _ := answers["require"].([]any)
	for _, element := range elements {
		r, err := readRequirement(element)
		if err != nil {
			return nil, err
		}
		out.require = append(out.require, Requirement{Policy: policy, Requirement: *r})
	}
	scores, _ := answers["score"].(map[string]any)
	for target, value := range scores {
		score, ok := number(value)
		if !ok || score < 0 || score > 100 {
			return nil, fmt.Errorf("score[%q] is %v, not a number from 0 to 100", target, value)
		}
		if out.score == nil {
			out.score = make(map[string]float64, len(scores))
		}
		out.score[target] = score
	}
	return out, nil
}

func number(value any) (float64, bool) {
	n, ok := value.(interface{ Float64() (float64, error) })
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

func readFinding(name string, element any) (Finding, error) {
	var f Finding
	fields, ok := element.(map[string]any)
	if !ok {
		return f, fmt.Errorf("%s holds %v, not an object", name, element)
	}
	for key, value := range fields {
		text, ok := value.(string)
		if !ok {
			return f, fmt.Errorf("%s: key %q is %v, not a string", name, key, value)
		}
		switch {
		case key == "code":
			f.Code = text
		case key == "msg":
			f.Message = text
		case key == "field" && name != "exclude":
			f.Field = text
		case key == "target" && name == "exclude":
			f.Target = text
		default:
			return f, fmt.Errorf("%s: unknown key %q", name, key)
		}
	}
	if f.Code == "" || f.Message == "" || name == "exclude" && f.Target == "" {
		return f, fmt.Errorf("%s: an element lacks code, msg or target", name)
	}
	return f, nil
}

func readRequirement(element any) (*labels.Requirement, error) {
	fields, _ := element.(map[string]any)
	key, _ := fields["key"].(string)
	operator, _ := fields["operator"].(string)
	var values []string
	list, _ := fields["values"].([]any)
	for _, value := range list {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("require: a value of %q is %v, not a string", key, value)
		}
		values = append(values, text)
	}
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOperator(operator), Values: values},
	}})
	if err != nil {
		return nil, fmt.Errorf("require: %w", err)
	}
	requirements, _ := selector.Requirements()
	if len(requirements) != 1 {
		return nil, fmt.Errorf("require: %v is no requirement on labels", element)
	}
	return &requirements[0], nil
}
