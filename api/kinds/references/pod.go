package references

import (
	"encoding/json"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
)

// PodOf returns a Pod as a controller would make it of an object's Pod template,
// or nil for an object that has none. It has the object's own name.
func PodOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	template := podTemplateOf(object)
	spec := PodSpec(object)
	if spec == nil || object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Pod") {
		return nil
	}
	pod := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(spec)}}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace(object.GetNamespace())
	pod.SetName(object.GetName())
	for _, field := range []string{"labels", "annotations"} {
		if of, found, err := unstructured.NestedStringMap(template, "metadata", field); err == nil && found {
			_ = unstructured.SetNestedStringMap(pod.Object, maps.Clone(of), "metadata", field) // nothing is in its way
		}
	}
	return pod
}

// EqualPodTemplates tells whether two objects have the same Pod template, so that a change
// from one to the other replaces no Pod. It compares JSON, in which the decoders of numbers
// make no difference.
func EqualPodTemplates(a, b *unstructured.Unstructured) bool {
	encode := func(object *unstructured.Unstructured) []byte {
		template := podTemplateOf(object)
		data, err := json.Marshal(map[string]any{"metadata": template["metadata"], "spec": template["spec"]})
		if template == nil || err != nil {
			return nil
		}
		return data
	}
	x, y := encode(a), encode(b)
	return x != nil && y != nil && fields.EqualJSON(x, y)
}

// podTemplateOf returns the template of an object's Pods, not a copy, or nil. A Pod is its
// own.
func podTemplateOf(object *unstructured.Unstructured) map[string]any {
	path := podTemplatePath(object)
	if len(path) == 0 {
		return object.Object
	}
	template, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	fields, _ := template.(map[string]any)
	return fields
}

func podTemplatePath(object *unstructured.Unstructured) []string {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Pod"}:
		return nil
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "CronJob"}:
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return []string{"spec", "template"}
}

// PodSpec returns the spec of an object's Pods, not a copy, or nil.
func PodSpec(object *unstructured.Unstructured) map[string]any {
	pod := fields.Child(podTemplateOf(object), "spec")
	if pod["containers"] == nil {
		return nil // a template of something else
	}
	return pod
}
