package propagation

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// gauges are what is measured of drift, by the one replica that propagates.
type gauges struct {
	began    *atomic.Bool
	reverted *prometheus.CounterVec
}

func newGauges() gauges {
	return gauges{began: &atomic.Bool{}, reverted: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "portico_drift_reverted_total", Help: "How often somebody's changes on a target were changed back.",
	}, []string{"namespace", "target"})}
}

var driftedResources = prometheus.NewDesc("portico_drifted_resources",
	"Resources whose objects were changed or deleted on a target, and are left so.", []string{"namespace", "target"}, nil)

// Describe implements prometheus.Collector.
func (c *Controller) Describe(to chan<- *prometheus.Desc) {
	c.gauges.reverted.Describe(to)
	to <- driftedResources
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(to chan<- prometheus.Metric) {
	if !c.gauges.began.Load() {
		return
	}
	c.gauges.reverted.Collect(to)
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil {
		return // the cache has stopped
	}
	for target, count := range driftedOn(list.Items) {
		to <- prometheus.MustNewConstMetric(driftedResources, prometheus.GaugeValue, float64(count), target.Namespace, target.Name)
	}
}

// driftedOn counts what has drifted on each target.
func driftedOn(resources []v1alpha1.KubernetesApplicationResource) map[types.NamespacedName]int {
	out := map[types.NamespacedName]int{}
	for i := range resources {
		if meta.IsStatusConditionTrue(resources[i].Status.Conditions, v1alpha1.Drifted) {
			out[types.NamespacedName{Namespace: resources[i].Namespace, Name: resources[i].Status.Target}]++
		}
	}
	return out
}
