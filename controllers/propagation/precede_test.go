package propagation

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestDefines(t *testing.T) {
	thing := schema.GroupKind{Group: "example.org", Kind: "Thing"}
	definition := func(apiVersion, group, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": "CustomResourceDefinition",
			"spec": map[string]any{"group": group, "names": map[string]any{"kind": kind}},
		}}
	}
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		want   bool
	}{
		"Its":       {"Whatever the version.", definition("apiextensions.k8s.io/v1", "example.org", "Thing"), true},
		"Another":   {"Of another kind.", definition("apiextensions.k8s.io/v1", "example.org", "Other"), false},
		"Elsewhere": {"Of a kind of that name in another group.", definition("apiextensions.k8s.io/v1", "example.com", "Thing"), false},
		"NoCRD":     {"Somebody else's kind of definitions.", definition("example.org/v1", "example.org", "Thing"), false},
		"Empty":     {"One that says nothing defines nothing.", &unstructured.Unstructured{Object: map[string]any{}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := defines(tc.object, thing); got != tc.want {
				t.Errorf("%s defines is %t", tc.reason, got)
			}
		})
	}
}

func TestArrivedOn(t *testing.T) {
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
		"Arrived": {"It is applied there.", func(*v1alpha1.KubernetesApplicationResource) {}, true},
		"New": {"Nothing is known of it yet.", func(r *v1alpha1.KubernetesApplicationResource) {
			r.Status = v1alpha1.KubernetesApplicationResourceStatus{}
		}, false},
		"Moving":  {"It is applied where it comes from.", func(r *v1alpha1.KubernetesApplicationResource) { r.Status.Target = "eu-2" }, false},
		"Changed": {"It was applied before it changed.", func(r *v1alpha1.KubernetesApplicationResource) { r.Generation = 3 }, false},
		"Refused": {"It was refused.", func(r *v1alpha1.KubernetesApplicationResource) { r.Status.Conditions[0].Status = metav1.ConditionFalse }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := arrivedOn(resource(tc.change), "eu-1", v1alpha1.Synced); got != tc.want {
				t.Errorf("%s arrivedOn is %t", tc.reason, got)
			}
		})
	}
}

// TestWaitFor fails with what it waits for, and not before.
func TestWaitFor(t *testing.T) {
	first := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Name: "space"}}
	for state, want := range map[v1alpha1.ResourceState]v1alpha1.ResourceState{
		"":                      v1alpha1.StateScheduled,
		v1alpha1.StateScheduled: v1alpha1.StateScheduled,
		v1alpha1.StateFailed:    v1alpha1.StateFailed,
	} {
		j := &journey{resource: &v1alpha1.KubernetesApplicationResource{}}
		first.Status.State = state
		if err := j.waitFor(first, "it cannot yet"); !errors.Is(err, errWait) {
			t.Errorf("the journey ended with %v", err)
		}
		if j.resource.Status.State != want {
			t.Errorf("while the other is %q, it is %q, want %q", state, j.resource.Status.State, want)
		}
	}
}
