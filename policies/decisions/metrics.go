package decisions

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-io/portico/policies/engine"
)

// metrics are counted by policy. Evaluations of a dry run have a label of their own, and
// do not count in metrics without that label.
type metrics struct {
	evaluations, errors, excluded *prometheus.CounterVec
	seconds                       *prometheus.HistogramVec
}

func newMetrics() metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return metrics{
		evaluations: counter("policy_evaluations_total", "Number of evaluations of a policy, by result. A reused answer is no evaluation.", "policy", "type", "result", "dry_run"),
		errors:      counter("policy_errors_total", "Number of failed evaluations of a policy, by the code of the finding, and of failed attempts to put it in force, by the reason of its condition.", "policy", "reason", "dry_run"),
		excluded:    counter("policy_excluded_targets_total", "Number of targets that a policy excluded, by code.", "policy", "code"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "policy_evaluation_seconds", Help: "Duration of the evaluation of a policy.",
			Buckets: []float64{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, .1, .25, .5, 1, 2.5},
		}, []string{"policy"}),
	}
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.evaluations, m.errors, m.excluded, m.seconds}
}

func (m metrics) count(q engine.Question, d *engine.Decision, part PolicyResult) {
	dryRun := strconv.FormatBool(q.Request.DryRun)
	m.evaluations.WithLabelValues(part.Policy, string(q.Type), string(part.Result), dryRun).Inc()
	if part.Err != nil {
		m.errors.WithLabelValues(part.Policy, part.Code, dryRun).Inc()
	}
	if q.Request.DryRun {
		return
	}
	m.seconds.WithLabelValues(part.Policy).Observe(part.Duration.Seconds())
	for _, f := range d.Excluded {
		if f.Policy == part.Policy {
			m.excluded.WithLabelValues(f.Policy, f.Code).Inc()
		}
	}
}

// CountBroken counts a policy that could not be put in force.
func (a *Evaluator) CountBroken(policy, reason string) {
	a.metrics.errors.WithLabelValues(policy, reason, "false").Inc()
}

// DeleteMetrics deletes the metrics of a policy that was deleted.
func (a *Evaluator) DeleteMetrics(policy string) {
	of := prometheus.Labels{"policy": policy}
	a.metrics.evaluations.DeletePartialMatch(of)
	a.metrics.errors.DeletePartialMatch(of)
	a.metrics.excluded.DeletePartialMatch(of)
	a.metrics.seconds.DeletePartialMatch(of)
}

// Describe implements prometheus.Collector.
func (a *Evaluator) Describe(to chan<- *prometheus.Desc) {
	for _, m := range a.metrics.all() {
		m.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (a *Evaluator) Collect(to chan<- prometheus.Metric) {
	for _, m := range a.metrics.all() {
		m.Collect(to)
	}
}
