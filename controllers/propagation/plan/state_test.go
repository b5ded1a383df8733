package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestStateOf(t *testing.T) {
	resource := templated(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: b}}`)
	desired, err := Desired(resource, hubID)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		change func(*unstructured.Unstructured)
		want   State
		owner  string // of a foreign object
	}{
		"InSync":   {reason: "The object is as desired.", change: func(*unstructured.Unstructured) {}, want: InSync},
		"More":     {reason: "A field that another manager added is no drift.", change: func(o *unstructured.Unstructured) { o.Object["data"].(map[string]any)["c"] = "d" }, want: InSync},
		"Drifted":  {reason: "A changed field of the template is drift.", change: func(o *unstructured.Unstructured) { o.Object["data"].(map[string]any)["a"] = "c" }, want: Drifted},
		"Outdated": {reason: "The digest reveals a field that was removed from the template.", change: func(o *unstructured.Unstructured) { annotate(o, v1alpha1.AppliedAnnotation, "old") }, want: Drifted},
		"Restored": {reason: "An object with the UID from before a restore belongs to the resource.", change: func(o *unstructured.Unstructured) { annotate(o, v1alpha1.ResourceUIDAnnotation, "u0") }, want: Drifted},
		"Unmarked": {reason: "An object without labels is foreign.", change: func(o *unstructured.Unstructured) { o.SetLabels(nil); o.SetAnnotations(nil) }, want: Foreign, owner: "an unknown owner"},
		"Controlled": {
			reason: "The message names the controller of a foreign object.",
			change: func(o *unstructured.Unstructured) {
				o.SetLabels(nil)
				o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Application", Name: "argo", Controller: new(true)}})
			},
			want: Foreign, owner: "Application argo on the target",
		},
		"OtherHub":       {reason: "An object of another hub is foreign.", change: func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{v1alpha1.ManagedByLabel: "hub-2"}) }, want: Foreign, owner: "KubernetesApplicationResource team-a/settings of another hub (hub-2)"},
		"OtherResource":  {reason: "An object of another resource is foreign.", change: func(o *unstructured.Unstructured) { annotate(o, v1alpha1.ResourceNameAnnotation, "other") }, want: Foreign, owner: "KubernetesApplicationResource team-a/other"},
		"OtherNamespace": {reason: "An object of the same resource name in another namespace is foreign.", change: func(o *unstructured.Unstructured) { annotate(o, v1alpha1.ResourceNamespaceAnnotation, "team-b") }, want: Foreign, owner: "KubernetesApplicationResource team-b/settings"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := desired.DeepCopy()
			tc.change(observed)
			if got := StateOf(desired, observed, resource, hubID); got != tc.want {
				t.Errorf("stands %s, want %s: %s", got, tc.want, tc.reason)
			}
			if tc.want == Foreign {
				if diff := cmp.Diff(tc.owner, OwnerName(observed, hubID)); diff != "" {
					t.Errorf("owner (-want +got):\n%s", diff)
				}
			}
		})
	}
	if got := StateOf(desired, nil, resource, hubID); got != Absent {
		t.Errorf("a missing object is %s", got)
	}
}
