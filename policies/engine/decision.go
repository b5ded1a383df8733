package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// Codes of findings that no rule made.
const (
	// CodePolicyError says that a policy could not be evaluated.
	CodePolicyError = "PolicyError"
	// CodePolicyTimeout says that a policy took too long.
	CodePolicyTimeout = "PolicyTimeout"
	// CodePolicyBroken says that a policy cannot be asked, and never could.
	CodePolicyBroken = "PolicyBroken"
	// CodeRequired says that a target lacks a label that a policy requires.
	CodeRequired = "Required"
)

// Finding is one thing a policy says.
type Finding struct {
	// Policy that says it.
	Policy string
	// Code in one word, for machines.
	Code string
	// Message for people.
	Message string
	// Field it is about; empty when it is about the whole object.
	Field string
	// Target it is about; empty when it is about the object.
	Target string
}

// String is what a person is told: policy NAME: CODE: message (field).
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
	// Policy that requires it.
	Policy string
	// Requirement on the target's labels.
	labels.Requirement
}

// Evaluation is one policy's part in a decision.
type Evaluation struct {
	// Policy, Revision and Action that decided.
	Policy, Revision string
	Action           policyv1alpha1.Action
	// Findings is how many it made.
	Findings int
	// Duration it took.
	Duration time.Duration
	// Err says why it could not be evaluated; nil when it was.
	Err error
	// Code is that of the finding Err became; empty when there is none.
	Code string
}

// Decision is what all policies say together. Each list is sorted, so that the
// same question has the same answer in the same words.
type Decision struct {
	// Revision names the set of policies that decided.
	Revision string
	// Denied is why the request is refused. Empty means allowed.
	Denied []Finding
	// Warnings are for the person who asks.
	Warnings []Finding
	// Recorded is what policies under audit found. Nobody is told now.
	Recorded []Finding
	// Excluded is why targets are not eligible. One target may be there often.
	Excluded []Finding
	// Required are the labels an eligible target has. The candidates without
	// them are in Excluded already.
	Required []Requirement
	// Scores prefer targets, the higher the better; a target without one has 0.
	Scores map[string]float64
	// Evaluations are the policies that were asked, by name.
	Evaluations []Evaluation
}

// Allowed says whether the request may go on.
func (d *Decision) Allowed() bool { return len(d.Denied) == 0 }

// Eligible says whether no policy excludes the target.
func (d *Decision) Eligible(target string) bool {
	return !slices.ContainsFunc(d.Excluded, func(f Finding) bool { return f.Target == target })
}

// Join is what is said of all objects of one request, or of one application,
// which run on one target: all findings, and the mean of the scores.
func Join(decisions ...*Decision) *Decision {
	if len(decisions) == 1 {
		return decisions[0]
	}
	out := &Decision{}
	for _, d := range decisions {
		out.Revision = d.Revision
		out.Denied = append(out.Denied, d.Denied...)
		out.Warnings = append(out.Warnings, d.Warnings...)
		out.Recorded = append(out.Recorded, d.Recorded...)
		out.Excluded = append(out.Excluded, d.Excluded...)
		out.Required = append(out.Required, d.Required...)
		out.Evaluations = append(out.Evaluations, d.Evaluations...)
		for target, score := range d.Scores {
			if out.Scores == nil {
				out.Scores = map[string]float64{}
			}
			out.Scores[target] += score / float64(len(decisions))
		}
	}
	out.sort()
	return out
}

// outputs are the answers of one policy, read and checked.
type outputs struct {
	deny, warn, exclude []Finding
	require             []Requirement
	score               map[string]float64
}

// add joins one policy's answers to the decision, as its action says.
func (d *Decision) add(policy string, action policyv1alpha1.Action, weight float64, out *outputs) {
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

// fail joins what follows from a policy that could not be evaluated. None of
// its answers count: a part of them could allow what the rest forbids.
func (d *Decision) fail(f Finding, action policyv1alpha1.Action, failurePolicy policyv1alpha1.FailurePolicy) {
	switch {
	case action == policyv1alpha1.Audit:
		d.Recorded = append(d.Recorded, f)
	case action == policyv1alpha1.Warn, failurePolicy == policyv1alpha1.Ignore:
		d.Warnings = append(d.Warnings, f)
	default:
		d.Denied = append(d.Denied, f)
	}
}

// all is everything a policy found, for one that only warns or records.
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

// readOutputs reads what Rego returned. Types were checked when the policy was
// compiled; what could be anything then is checked now.
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
