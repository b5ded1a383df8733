package kinds

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodOf returns a Pod as a controller would make it of an object's Pod template,
// or nil for an object that has none. It has the object's own name.
func PodOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	spec := podSpec(object)
	if spec == nil {
		return nil
	}
	pod := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(spec)}}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace(object.GetNamespace())
	pod.SetName(object.GetName())
	for _, field := range []string{"labels", "annotations"} {
		if of, found, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", field); err == nil && found {
			_ = unstructured.SetNestedStringMap(pod.Object, maps.Clone(of), "metadata", field) // nothing is in its way
		}
	}
	return pod
}

// EqualPodTemplates tells whether two objects have the same Pod template, so that a change
// from one to the other replaces no Pod. It compares JSON, in which the decoders of numbers
// make no difference.
func EqualPodTemplates(a, b *unstructured.Unstructured) bool {
	template := func(object *unstructured.Unstructured) []byte {
		value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template")
		data, err := json.Marshal(value)
		if err != nil {
			return nil
		}
		return data
	}
	x, y := template(a), template(b)
	return x != nil && y != nil && EqualJSON(x, y)
}

// podSpec returns the spec of an object's Pods, not a copy, or nil.
func podSpec(object *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template", "spec")
	pod, _ := spec.(map[string]any)
	if pod["containers"] == nil {
		return nil // a template of something else
	}
	return pod
}
