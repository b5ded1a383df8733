package engine

import (
	"crypto/sha256"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/reuse"
)

// maxTargetTerms limits the number of targets in the cache.
const maxTargetTerms = 8192

// targetTerms caches targets as terms and as digests, so that a target is converted
// when it changes, and not for each question. Evaluations can share terms. The cache
// may be lost: then the targets are converted again.
type targetTerms struct{ byName *lru.Cache }

type targetTerm struct {
	uid             types.UID
	resourceVersion string
	term            *ast.Term
	digest          reuse.Digest
}

func newTargetTerms(size int) *targetTerms { return &targetTerms{byName: lru.New(size)} }

// of returns the converted targets, in the same order.
func (c *targetTerms) of(targets []*workloadv1alpha1.KubernetesTarget) []targetTerm {
	out := make([]targetTerm, len(targets))
	for i, target := range targets {
		out[i] = c.convert(target)
	}
	return out
}

func (c *targetTerms) convert(target *workloadv1alpha1.KubernetesTarget) targetTerm {
	if target.ResourceVersion == "" { // the target is not stored, and has no version that would show a change
		return newTargetTerm(target)
	}
	key := types.NamespacedName{Namespace: target.Namespace, Name: target.Name}
	if value, ok := c.byName.Get(key); ok {
		if known, ok := value.(targetTerm); ok && known.uid == target.UID && known.resourceVersion == target.ResourceVersion {
			return known
		}
	}
	converted := newTargetTerm(target)
	c.byName.Add(key, converted)
	return converted
}

func newTargetTerm(target *workloadv1alpha1.KubernetesTarget) targetTerm {
	seen := input.NewTarget(target)
	out := targetTerm{uid: target.UID, resourceVersion: target.ResourceVersion, term: input.Term(seen)}
	hash := sha256.New()
	fields, err := input.Digests(seen)
	if err != nil { // a target consists of strings, which are always JSON
		_, _ = fmt.Fprintf(hash, "%#v", seen)
	}
	for _, field := range fields {
		hash.Write(field.Sum[:])
	}
	out.digest = reuse.Digest(hash.Sum(nil))
	return out
}
