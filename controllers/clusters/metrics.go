package clusters

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// expirySeconds is told for every target whose credential is known to end. It
// falls below zero when the credential has ended.
var expirySeconds = prometheus.NewDesc("portico_target_credential_expiry_seconds",
	"Seconds until the credential of a target's connection Secret ends.", []string{"namespace", "target"}, nil)

// Describe implements prometheus.Collector.
func (c *Clusters) Describe(to chan<- *prometheus.Desc) { to <- expirySeconds }

// Collect implements prometheus.Collector.
func (c *Clusters) Collect(to chan<- prometheus.Metric) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for target, e := range c.byTarget {
		if e.connection == nil || e.connection.way.Expiry.IsZero() {
			continue
		}
		left := time.Until(e.connection.way.Expiry).Seconds()
		to <- prometheus.MustNewConstMetric(expirySeconds, prometheus.GaugeValue, left, target.Namespace, target.Name)
	}
}
