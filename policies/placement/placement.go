// Package placement chooses the target of an application.
package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Question asks where an application may run.
type Question struct {
	// Selector the application asks for.
	Selector labels.Selector
	// Tolerations are the taints of targets that do not keep it away.
	Tolerations []corev1.Toleration
	// Targets published in the application's namespace, in any order.
	Targets []v1alpha1.KubernetesTarget
	// Placed counts, by target, the resources that are on it already.
	Placed map[string]int
	// Excluded are targets that are no choice this time, and why, such as the
	// one that is being left, and those that policies exclude.
	Excluded map[string]string
	// Scores are how much policies prefer targets; one without has 0.
	Scores map[string]float64
	// Cargo is what the application sends; a target must let all of it in.
	Cargo []policies.Cargo
	// Frontier is what targets let in by default.
	Frontier policies.Frontier
}

// Decision is where the application runs, or why it runs nowhere.
type Decision struct {
	// Target is the name of the chosen target; empty when none fits.
	Target string
	// Exclusions say, by target name, why each of the others does not fit.
	Exclusions []Exclusion
	// Ranking are the targets that fit, the best first, when policies scored any.
	Ranking []Rank
}

// Rank is how much policies prefer one target that fits.
type Rank struct {
	Target string
	Score  float64
}

// Exclusion is why one target does not fit.
type Exclusion struct {
	Target string
	Why    string
}

// Decide chooses a target. It may be one that matches, takes in new applications,
// has no taint that keeps this one away, and answers. Of those it is the one with
// the best score, then the one with the fewest taints of effect PreferNoSchedule
// that are not tolerated, then the one with the fewest resources, then the first
// by name. The same question always has the same answer.
func Decide(q Question) Decision {
	var fit []string
	var d Decision
	unwelcome := map[string]int{}
	for _, target := range q.Targets {
		if why := exclude(q, target); why != "" {
			d.Exclusions = append(d.Exclusions, Exclusion{Target: target.Name, Why: why})
			continue
		}
		fit = append(fit, target.Name)
		unwelcome[target.Name] = len(untolerated(q.Tolerations, target.Spec.Taints, corev1.TaintEffectPreferNoSchedule))
	}
	slices.SortFunc(d.Exclusions, func(a, b Exclusion) int { return cmp.Compare(a.Target, b.Target) })
	slices.SortFunc(fit, func(a, b string) int {
		return cmp.Or(cmp.Compare(q.Scores[b], q.Scores[a]), cmp.Compare(unwelcome[a], unwelcome[b]), cmp.Compare(q.Placed[a], q.Placed[b]), cmp.Compare(a, b))
	})
	if len(fit) > 0 {
		d.Target = fit[0]
	}
	if len(q.Scores) > 0 {
		for _, target := range fit {
			d.Ranking = append(d.Ranking, Rank{Target: target, Score: q.Scores[target]})
		}
	}
	return d
}

func exclude(q Question, target v1alpha1.KubernetesTarget) string {
	if why := mismatch(q.Selector, target.Labels); why != "" {
		return why
	}
	if why := q.Excluded[target.Name]; why != "" {
		return why
	}
	for _, cargo := range q.Cargo {
		if why := q.Frontier.Refuses(&target, cargo); why != "" {
			return why
		}
	}
	if target.DeletionTimestamp != nil {
		return "is being deleted"
	}
	if target.Spec.Unschedulable {
		return "is cordoned"
	}
	if taints := untolerated(q.Tolerations, target.Spec.Taints, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute); len(taints) > 0 {
		return fmt.Sprintf("has a taint that is not tolerated: %s", taints[0].ToString())
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

// untolerated are the taints of some effects that nothing tolerates.
func untolerated(tolerations []corev1.Toleration, taints []corev1.Taint, effects ...corev1.TaintEffect) []corev1.Taint {
	var out []corev1.Taint
	for _, taint := range taints {
		if slices.Contains(effects, taint.Effect) && !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Background(), &taint, false) // compares no numbers, as Kubernetes does by default
		}) {
			out = append(out, taint)
		}
	}
	return out
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
	return fmt.Sprintf("0 of %d targets match: %s", len(d.Exclusions), d.excluded())
}

// excluded lists the targets that do not fit.
func (d Decision) excluded() string {
	parts := make([]string, 0, len(d.Exclusions))
	for i, e := range d.Exclusions {
		if i == maxExclusions {
			parts = append(parts, fmt.Sprintf("and %d more", len(d.Exclusions)-i))
			break
		}
		parts = append(parts, e.Target+" "+e.Why)
	}
	return strings.Join(parts, "; ")
}

// Because says, in one line, what became of all targets besides the one that was
// chosen, and how they scored; empty when there was no other.
func (d Decision) Because() string {
	var parts []string
	for i, r := range d.Ranking {
		if i == maxExclusions {
			parts = append(parts, fmt.Sprintf("and %d more fit", len(d.Ranking)-i))
			break
		}
		text := r.Target + " has "
		if r.Target == d.Target {
			text = "score "
		}
		parts = append(parts, text+strconv.FormatFloat(r.Score, 'f', -1, 64))
	}
	var out []string
	if len(parts) > 0 {
		out = append(out, strings.Join(parts, ", "))
	}
	if len(d.Exclusions) > 0 {
		out = append(out, d.excluded())
	}
	return strings.Join(out, "; ")
}
