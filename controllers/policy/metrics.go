package policy

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-io/portico/policies/engine"
)

// Metrics reads the engine at each scrape, so that the metrics are current on every
// replica.
type Metrics struct {
	engine      *engine.Engine
	info, ready *prometheus.Desc
}

// NewMetrics returns a collector of the policies of an engine.
func NewMetrics(e *engine.Engine) *Metrics {
	return &Metrics{
		engine: e,
		info: prometheus.NewDesc("policy_info",
			"The policies in force on this replica, with action and revision.", []string{"policy", "action", "revision"}, nil),
		ready: prometheus.NewDesc("policy_ready",
			"Whether the policy in spec is in force on this replica. 0 means that an earlier form is in force, or none.", []string{"policy"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.info
	to <- m.ready
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, state := range m.engine.Policies() {
		to <- prometheus.MustNewConstMetric(m.info, prometheus.GaugeValue, 1, state.Policy, string(state.Action), state.Serving)
		ready := 0.0
		if state.OK() {
			ready = 1
		}
		to <- prometheus.MustNewConstMetric(m.ready, prometheus.GaugeValue, ready, state.Policy)
	}
}

// violations collects the results of the last audit. Only the leader has one.
type violations struct{ audits *auditor }

var violationsDesc = prometheus.NewDesc("policy_violations",
	"Number of existing objects that a policy would deny. Only the leader exports it.", []string{"policy"}, nil)

// Describe implements prometheus.Collector.
func (v violations) Describe(to chan<- *prometheus.Desc) { to <- violationsDesc }

// Collect implements prometheus.Collector.
func (v violations) Collect(to chan<- prometheus.Metric) {
	for policy, audit := range v.audits.results() {
		to <- prometheus.MustNewConstMetric(violationsDesc, prometheus.GaugeValue, float64(audit.Violations), policy)
	}
}
