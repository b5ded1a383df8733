package decisions

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/targetselection"
)

// NewSchedulingContext returns the context in which policies are evaluated for the
// objects of an application, from the query that selects its target.
func NewSchedulingContext(namespace *corev1.Namespace, app input.Application, q targetselection.Query) SchedulingContext {
	return SchedulingContext{Namespace: namespace, Application: app, Selector: q.Selector, Targets: q.Targets, Placed: q.Placed}
}

// Restrict returns a query that selects only targets that a decision allows, with
// the scores of the decision. Exclusions of the query itself win, such as those of
// a move. A denial excludes every target.
func Restrict(q targetselection.Query, d *engine.Decision) targetselection.Query {
	excluded := map[string]string{}
	if !d.Allowed() {
		for _, target := range q.Targets {
			excluded[target.Name] = "is denied by " + strings.Join(Messages(d.Denied), ", and by ")
		}
	}
	maps.Copy(excluded, ExclusionReasons(d.Excluded))
	maps.Copy(excluded, q.Excluded)
	q.Excluded, q.Scores = excluded, d.Scores
	return q
}
