package memory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestDriftedResources counts drift by events, without a list.
func TestDriftedResources(t *testing.T) {
	m := NewMetrics()
	set := func(name, target string, drifted metav1.ConditionStatus) {
		resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		resource.Status.Target = target
		resource.Status.Conditions = []metav1.Condition{{Type: v1alpha1.Drifted, Status: drifted}}
		m.SetDrifted(resource)
	}
	want := func(step string, eu1, eu2 int) {
		t.Helper()
		counts := map[types.NamespacedName]int{}
		for name, n := range map[string]int{"eu-1": eu1, "eu-2": eu2} {
			if n > 0 {
				counts[types.NamespacedName{Namespace: "shop", Name: name}] = n
			}
		}
		if diff := cmp.Diff(counts, m.drifts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	set("a", "eu-1", metav1.ConditionTrue)
	set("b", "eu-1", metav1.ConditionTrue)
	set("c", "eu-1", metav1.ConditionFalse)
	set("d", "eu-2", metav1.ConditionTrue)
	want("Only resources with drift count.", 2, 1)
	set("a", "eu-1", metav1.ConditionTrue)
	want("The same event counts once.", 2, 1)
	set("a", "eu-2", metav1.ConditionTrue)
	want("A resource that moved counts on its new target.", 1, 2)
	set("b", "eu-1", metav1.ConditionFalse)
	m.DeleteDrifted(types.NamespacedName{Namespace: "shop", Name: "d"})
	m.DeleteDrifted(types.NamespacedName{Namespace: "shop", Name: "d"})
	want("Corrected drift and deleted resources do not count.", 0, 1)
}
