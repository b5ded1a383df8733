package engine

import (
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/types"

	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

// candidates remembers targets as terms, so that one is converted when it
// changes and not when it is asked about. Terms are safe to share between
// evaluations.
//
// Two generations of at most maxCandidates bound what it keeps: what was not
// asked about during a whole generation is forgotten.
type candidates struct {
	mu            sync.Mutex
	young, old    map[types.NamespacedName]candidate
	maxCandidates int
}

type candidate struct {
	uid             types.UID
	resourceVersion string
	term            *ast.Term
}

func newCandidates() *candidates {
	return &candidates{young: map[types.NamespacedName]candidate{}, maxCandidates: 4096}
}

// terms converts the targets, in their order.
func (c *candidates) terms(targets []*workloadv1alpha1.KubernetesTarget) []*ast.Term {
	terms := make([]*ast.Term, len(targets))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, target := range targets {
		terms[i] = c.term(target)
	}
	return terms
}

func (c *candidates) term(target *workloadv1alpha1.KubernetesTarget) *ast.Term {
	if target.ResourceVersion == "" { // never stored, so nothing says when it changes
		return input.Term(input.NewTarget(target))
	}
	key := types.NamespacedName{Namespace: target.Namespace, Name: target.Name}
	known, ok := c.young[key]
	if ok && known.is(target) {
		return known.term
	}
	if known, ok = c.old[key]; !ok || !known.is(target) {
		known = candidate{uid: target.UID, resourceVersion: target.ResourceVersion, term: input.Term(input.NewTarget(target))}
	}
	if len(c.young) >= c.maxCandidates {
		c.young, c.old = map[types.NamespacedName]candidate{}, c.young
	}
	c.young[key] = known
	return known.term
}

func (c candidate) is(target *workloadv1alpha1.KubernetesTarget) bool {
	return c.uid == target.UID && c.resourceVersion == target.ResourceVersion
}
