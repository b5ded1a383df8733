// Package targetselection selects the target of an application.
package targetselection

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

// Query holds the conditions for the target of an application.
type Query struct {
	// Selector is the target selector of the application.
	Selector labels.Selector
	// Tolerations are the tolerations of the application.
	Tolerations []corev1.Toleration
	// Targets are the targets that the application's namespace publishes, in
	// any order.
	Targets []v1alpha1.KubernetesTarget
	// Placed is the number of the namespace's resources on each target.
	Placed map[string]int
	// Load is the number of resources on the cluster of each target, over all namespaces
	// with a target for the cluster. The target with less load is preferred. Without
	// Load, Placed is compared.
	Load map[string]int
	// Excluded are targets that must not be selected, with the reasons: a target that
	// the application moves away from, and targets that policies exclude.
	Excluded map[string]string
	// Scores are the scores of policies; a target without a score has 0.
	Scores map[string]float64
	// AllowItems are the objects that the application sends. A target has to allow all
	// of them.
	AllowItems []policies.AllowItem
	// AllowDefaults apply to targets without spec.allow.
	AllowDefaults policies.AllowDefaults
}

// Decision is the selected target, or the reasons why no target fits.
type Decision struct {
	// Target is the name of the selected target; empty when no target fits.
	Target string
	// Exclusions are the reasons against each target that does not fit, by
	// name.
	Exclusions []Exclusion
	// Ranking lists the targets that fit, the best first. It is empty when
	// policies scored none.
	Ranking []Rank
}

// Rank is the score of one target that fits.
type Rank struct {
	Target string
	Score  float64
}

// Exclusion is the reason why one target does not fit.
type Exclusion struct {
	Target string
	Reason string
}

// Decide selects a target. A target fits if it matches the selector, allows all
// items, takes new applications, has no taint that is not tolerated, and is
// reachable. Of the targets that fit, Decide prefers the best score, then the
// fewest untolerated taints of effect PreferNoSchedule, then the least load, then
// the first name. The same query always has the same result.
func Decide(q Query) Decision {
	var fit []string
	var d Decision
	load := q.Load
	if load == nil {
		load = q.Placed
	}
	untoleratedTaints := map[string]int{}
	for _, target := range q.Targets {
		if why := exclusionReason(q, target); why != "" {
			d.Exclusions = append(d.Exclusions, Exclusion{Target: target.Name, Reason: why})
			continue
		}
		fit = append(fit, target.Name)
		untoleratedTaints[target.Name] = len(untolerated(q.Tolerations, target.Spec.Taints, corev1.TaintEffectPreferNoSchedule))
	}
	slices.SortFunc(d.Exclusions, func(a, b Exclusion) int { return cmp.Compare(a.Target, b.Target) })
	slices.SortFunc(fit, func(a, b string) int {
		return cmp.Or(cmp.Compare(q.Scores[b], q.Scores[a]), cmp.Compare(untoleratedTaints[a], untoleratedTaints[b]), cmp.Compare(load[a], load[b]), cmp.Compare(a, b))
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

func exclusionReason(q Query, target v1alpha1.KubernetesTarget) string {
	if why := mismatch(q.Selector, target.Labels); why != "" {
		return why
	}
	if why := q.Excluded[target.Name]; why != "" {
		return why
	}
	for _, item := range q.AllowItems {
		if why := q.AllowDefaults.DeniedReason(&target, item); why != "" {
			return why
		}
	}
	if why := policies.NewObjectsDeniedReason(&target); why != "" {
		return why
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

// untolerated returns the taints of some effects that no toleration matches.
func untolerated(tolerations []corev1.Toleration, taints []corev1.Taint, effects ...corev1.TaintEffect) []corev1.Taint {
	var out []corev1.Taint
	for _, taint := range taints {
		if slices.Contains(effects, taint.Effect) && !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Background(), &taint, false) // numbers are not compared, as by default in Kubernetes
		}) {
			out = append(out, taint)
		}
	}
	return out
}

// mismatch describes the first requirement of a selector that labels do not meet.
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

// maxExclusions is the number of targets that a message names.
const maxExclusions = 10

// Message returns, in one line, why no target fits.
func (d Decision) Message(namespace string) string {
	if len(d.Exclusions) == 0 {
		return fmt.Sprintf("no KubernetesTarget is published in namespace %s", namespace)
	}
	return fmt.Sprintf("0 of %d targets match: %s", len(d.Exclusions), d.excluded())
}

// excluded lists the targets that do not fit, with the reasons.
func (d Decision) excluded() string {
	parts := make([]string, 0, len(d.Exclusions))
	for i, e := range d.Exclusions {
		if i == maxExclusions {
			parts = append(parts, fmt.Sprintf("and %d more", len(d.Exclusions)-i))
			break
		}
		parts = append(parts, e.Target+" "+e.Reason)
	}
	return strings.Join(parts, "; ")
}

// Explanation describes, in one line, the scores of the targets, and the reasons
// against those that do not fit. It is empty when there was no other target.
func (d Decision) Explanation() string {
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
