package engine

import (
	"crypto/sha256"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

// Input returns the input document of a policy with the parameters, as a value of
// package input.
func Input(q Question, parameters map[string]any) any {
	if q.Type == policyv1alpha1.Publish {
		return input.NewPublish(q.Question, parameters)
	}
	if q.Selector != nil {
		q.Targets = matchingTargets(q.Targets, q.Selector)
	}
	return input.NewScheduling(q.Question, parameters)
}

// document is the input of one question without the parameters, which differ between
// policies. Each form of the document is made when the first policy needs it.
type document struct {
	question Question
	now      time.Time
	terms    *targetTerms

	value   any // a value of package input, without targets
	targets []targetTerm
	fields  [][2]*ast.Term
	sums    []input.Digest
	err     error
}

// newDocument returns the document of a question, with the targets that match its
// selector.
func (e *Engine) newDocument(q Question) *document {
	now := q.Now
	if now.IsZero() {
		now = e.Now()
	}
	return &document{question: q, now: now, terms: e.targetTerms}
}

func (d *document) convert() {
	if d.value != nil {
		return
	}
	if d.question.Type == policyv1alpha1.Publish {
		d.value = input.NewPublish(d.question.Question, nil)
		return
	}
	d.targets = d.terms.of(input.Sorted(d.question.Targets))
	rest := d.question.Question
	rest.Targets = nil
	d.value = input.NewScheduling(rest, nil)
}

// inputFields returns the document as the terms that all policies share.
func (d *document) inputFields() [][2]*ast.Term {
	if d.fields != nil {
		return d.fields
	}
	d.convert()
	if d.question.Type == policyv1alpha1.Publish {
		d.fields = input.Fields(d.value, "parameters")
		return d.fields
	}
	targets := make([]*ast.Term, len(d.targets))
	for i := range d.targets {
		targets[i] = d.targets[i].term
	}
	d.fields = append(input.Fields(d.value, "targets", "parameters"), [2]*ast.Term{ast.InternedTerm("targets"), ast.ArrayTerm(targets...)})
	return d.fields
}

// digests returns the digest of each field of the document.
func (d *document) digests() ([]input.Digest, error) {
	if d.sums != nil || d.err != nil {
		return d.sums, d.err
	}
	d.convert()
	if d.question.Type == policyv1alpha1.Publish {
		d.sums, d.err = input.Digests(d.value, "parameters")
		return d.sums, d.err
	}
	d.sums, d.err = input.Digests(d.value, "targets", "parameters")
	hash := sha256.New()
	for i := range d.targets {
		hash.Write(d.targets[i].digest[:])
	}
	d.sums = append(d.sums, input.Digest{Name: "targets", Sum: [sha256.Size]byte(hash.Sum(nil))})
	return d.sums, d.err
}
