package clusters

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// expirySeconds is reported for every target whose credential has a known expiry. It
// is negative after the expiry.
var expirySeconds = prometheus.NewDesc("portico_target_credential_expiry_seconds",
	"Seconds until the credential of a target's connection Secret ends.", []string{"namespace", "target"}, nil)

// Describe implements prometheus.Collector.
func (c *Clusters) Describe(to chan<- *prometheus.Desc) { to <- expirySeconds }

// Collect implements prometheus.Collector.
func (c *Clusters) Collect(to chan<- prometheus.Metric) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for target, e := range c.byTarget {
		if e.connection == nil || e.connection.connectionConfig.Expiry.IsZero() {
			continue
		}
		left := time.Until(e.connection.connectionConfig.Expiry).Seconds()
		to <- prometheus.MustNewConstMetric(expirySeconds, prometheus.GaugeValue, left, target.Namespace, target.Name)
	}
}
