package memory

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Metrics are the metrics of drift. Only the replica that propagates exports them.
type Metrics struct {
	Started  atomic.Bool
	Reverted *prometheus.CounterVec

	mu sync.Mutex
	// drifted has the target of each resource with drift, and drifts the number of such
	// resources for each target.
	drifted map[types.NamespacedName]types.NamespacedName
	drifts  map[types.NamespacedName]int
}

// NewMetrics returns the metrics, which export nothing before Started.
func NewMetrics() *Metrics {
	return &Metrics{
		drifted: map[types.NamespacedName]types.NamespacedName{}, drifts: map[types.NamespacedName]int{},
		Reverted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "portico_drift_reverted_total", Help: "Number of times that changes by others on a target were reverted.",
		}, []string{"namespace", "target"}),
	}
}

var driftedResources = prometheus.NewDesc("portico_drifted_resources",
	"Resources whose objects were changed or deleted on a target, and are not corrected.", []string{"namespace", "target"}, nil)

// SetDrifted counts the drift of a resource.
func (m *Metrics) SetDrifted(resource *v1alpha1.KubernetesApplicationResource) {
	key := client.ObjectKeyFromObject(resource)
	if !meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.Drifted) {
		m.DeleteDrifted(key)
		return
	}
	target := types.NamespacedName{Namespace: resource.Namespace, Name: resource.Status.Target}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	m.drifted[key] = target
	m.drifts[target]++
}

// DeleteDrifted stops counting a resource.
func (m *Metrics) DeleteDrifted(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
}

func (m *Metrics) remove(key types.NamespacedName) {
	target, ok := m.drifted[key]
	if !ok {
		return
	}
	delete(m.drifted, key)
	if m.drifts[target]--; m.drifts[target] == 0 {
		delete(m.drifts, target)
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	m.Reverted.Describe(to)
	to <- driftedResources
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	if !m.Started.Load() {
		return
	}
	m.Reverted.Collect(to)
	m.mu.Lock()
	defer m.mu.Unlock()
	for target, count := range m.drifts {
		to <- prometheus.MustNewConstMetric(driftedResources, prometheus.GaugeValue, float64(count), target.Namespace, target.Name)
	}
}
