package decisions

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-io/portico/policies/engine"
)

// metrics are told by policy. What is asked in a dry run counts by itself, and
// not where there is no label to tell.
type metrics struct {
	evaluations, errors, excluded *prometheus.CounterVec
	seconds                       *prometheus.HistogramVec
}

func newMetrics() metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return metrics{
		evaluations: counter("policy_evaluations_total", "How often a policy was asked, and what it said.", "policy", "type", "result", "dry_run"),
		errors:      counter("policy_errors_total", "How often a policy could not be evaluated, by the code of the finding that it became, or could not be put in force, by the reason of its condition.", "policy", "reason", "dry_run"),
		excluded:    counter("policy_excluded_targets_total", "How many targets a policy excluded, by the code it gave.", "policy", "code"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "policy_evaluation_seconds", Help: "How long a policy took to answer.",
			Buckets: []float64{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, .1, .25, .5, 1, 2.5},
		}, []string{"policy"}),
	}
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.evaluations, m.errors, m.excluded, m.seconds}
}

func (m metrics) count(q engine.Question, d *engine.Decision, part Part) {
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

// Broken counts a policy that could not be put in force.
func (a *Asker) Broken(policy, reason string) {
	a.metrics.errors.WithLabelValues(policy, reason, "false").Inc()
}

// Forget drops what was counted of a policy that is no more.
func (a *Asker) Forget(policy string) {
	of := prometheus.Labels{"policy": policy}
	a.metrics.evaluations.DeletePartialMatch(of)
	a.metrics.errors.DeletePartialMatch(of)
	a.metrics.excluded.DeletePartialMatch(of)
	a.metrics.seconds.DeletePartialMatch(of)
}

// Describe implements prometheus.Collector.
func (a *Asker) Describe(to chan<- *prometheus.Desc) {
	for _, m := range a.metrics.all() {
		m.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (a *Asker) Collect(to chan<- prometheus.Metric) {
	for _, m := range a.metrics.all() {
		m.Collect(to)
	}
}
