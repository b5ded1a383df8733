package propagation

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
)

func TestClearObserved(t *testing.T) {
	there := &unstructured.Unstructured{}
	cases := map[string]struct {
		reason   string
		policy   v1alpha1.ObservePolicy
		state    plan.State
		observed *unstructured.Unstructured
		want     bool
	}{
		"Asked":     {reason: "With spec.observe Full the object is shown.", policy: v1alpha1.ObserveFull, state: plan.InSync, observed: there, want: true},
		"NotAsked":  {reason: "Without spec.observe the object is not shown.", state: plan.InSync, observed: there},
		"Unseen":    {reason: "The last observation is kept while the target is unreachable.", policy: v1alpha1.ObserveFull, want: true},
		"JustMade":  {reason: "An object that was just created is shown.", policy: v1alpha1.ObserveFull, state: plan.Absent, observed: there, want: true},
		"Gone":      {reason: "A deleted object is not shown.", policy: v1alpha1.ObserveFull, state: plan.Absent},
		"SomeElses": {reason: "An object of another owner is not shown.", policy: v1alpha1.ObserveFull, state: plan.Foreign, observed: there},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resource := &v1alpha1.KubernetesApplicationResource{}
			resource.Spec.Observe = tc.policy
			resource.Status.Observed = &apiextensionsv1.JSON{Raw: []byte(`{}`)}
			resource.Status.Ownership = []v1alpha1.FieldOwner{{Manager: "a"}}
			resource.Status.Conditions = []metav1.Condition{{Type: v1alpha1.Observed}}
			(&scope.Scope{Resource: resource, State: tc.state, Observed: tc.observed}).ClearObserved()
			src := resource.Status
			if got := src.Observed != nil && src.Ownership != nil && len(src.Conditions) > 0; got != tc.want || (src.Observed != nil) != tc.want {
				t.Errorf("%s: shown is %v", tc.reason, got)
			}
		})
	}
}
