package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestConditionTrueOn(t *testing.T) {
	resource := func(change func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
		r := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		r.Status.Target = "eu-1"
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.Synced, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
		change(r)
		return r
	}
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.KubernetesApplicationResource)
		want   bool
	}{
		"Arrived": {"The resource is applied on the target.", func(*v1alpha1.KubernetesApplicationResource) {}, true},
		"New": {"The resource has no status yet.", func(r *v1alpha1.KubernetesApplicationResource) {
			r.Status = v1alpha1.KubernetesApplicationResourceStatus{}
		}, false},
		"Moving":  {"The resource is applied on the target it leaves.", func(r *v1alpha1.KubernetesApplicationResource) { r.Status.Target = "eu-2" }, false},
		"Changed": {"An earlier generation of the resource is applied.", func(r *v1alpha1.KubernetesApplicationResource) { r.Generation = 3 }, false},
		"Refused": {"The target refused the resource.", func(r *v1alpha1.KubernetesApplicationResource) { r.Status.Conditions[0].Status = metav1.ConditionFalse }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ConditionTrueOn(resource(tc.change), "eu-1", v1alpha1.Synced); got != tc.want {
				t.Errorf("%s arrivedOn is %t", tc.reason, got)
			}
		})
	}
}
