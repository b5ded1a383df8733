// Package placement chooses the target of an application.
package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Question asks where an application may run.
type Question struct {
	// Selector the application asks for.
	Selector labels.Selector
	// Targets published in the application's namespace, in any order.
	Targets []v1alpha1.KubernetesTarget
	// Placed counts, by target, the resources that are on it already.
	Placed map[string]int
}

// Decision is where the application runs, or why it runs nowhere.
type Decision struct {
	// Target is the name of the chosen target; empty when none fits.
	Target string
	// Exclusions say, by target name, why each of the others does not fit.
	Exclusions []Exclusion
}

// Exclusion is why one target does not fit.
type Exclusion struct {
	Target string
	Why    string
}

// Decide chooses, among the targets that match, are reachable and are not
// leaving, the one with the fewest resources, and then the first by name. The
// same question always has the same answer.
func Decide(q Question) Decision {
	var fit []string
	var d Decision
	for _, target := range q.Targets {
		if why := exclude(q.Selector, target); why != "" {
			d.Exclusions = append(d.Exclusions, Exclusion{Target: target.Name, Why: why})
			continue
		}
		fit = append(fit, target.Name)
	}
	slices.SortFunc(d.Exclusions, func(a, b Exclusion) int { return cmp.Compare(a.Target, b.Target) })
	if len(fit) > 0 {
		d.Target = slices.MinFunc(fit, func(a, b string) int {
			return cmp.Or(cmp.Compare(q.Placed[a], q.Placed[b]), cmp.Compare(a, b))
		})
	}
	return d
}

func exclude(selector labels.Selector, target v1alpha1.KubernetesTarget) string {
	if why := mismatch(selector, target.Labels); why != "" {
		return why
	}
	if target.DeletionTimestamp != nil {
		return "is being deleted"
	}
	reachable := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.TargetReachable)
	switch {
	case reachable == nil:
		return "is not connected yet"
	case reachable.Status != metav1.ConditionTrue:
		return "is not reachable: " + reachable.Reason
	}
	return ""
}

// mismatch names the first requirement the labels do not meet.
func mismatch(selector labels.Selector, have map[string]string) string {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return "does not match a selector that selects nothing"
	}
	for _, r := range requirements {
		if r.Matches(labels.Set(have)) {
			continue
		}
		if value, ok := have[r.Key()]; ok {
			return fmt.Sprintf("wants %s, has %s=%s", r.String(), r.Key(), value)
		}
		return fmt.Sprintf("wants %s, has no label %s", r.String(), r.Key())
	}
	return ""
}

// maxExclusions bounds a message; there may be hundreds of targets.
const maxExclusions = 10

// Why says, in one line, why an application runs nowhere.
func (d Decision) Why(namespace string) string {
	if len(d.Exclusions) == 0 {
		return fmt.Sprintf("no KubernetesTarget is published in namespace %s", namespace)
	}
	parts := make([]string, 0, len(d.Exclusions))
	for i, e := range d.Exclusions {
		if i == maxExclusions {
			parts = append(parts, fmt.Sprintf("and %d more", len(d.Exclusions)-i))
			break
		}
		parts = append(parts, e.Target+" "+e.Why)
	}
	return fmt.Sprintf("0 of %d targets match: %s", len(d.Exclusions), strings.Join(parts, "; "))
}
