package kinds

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// content is what Secrets and ConfigMaps have in common. The hub runs nothing of
// them, so there is nothing to hold, and they have no status to reflect. What is
// in them is kept out of their resource: more people may read that than a Secret,
// and a large ConfigMap would be stored twice. Propagation reads it when it is
// to be sent. No annotation is sent, because tools keep copies of the content
// there; labels do, because people select by them.
type content struct{}

// SecretDataFields are the fields of a Secret with its values.
var SecretDataFields = []string{"data", "stringData"}

// contentKeys are the fields of Secrets and ConfigMaps with their values.
var contentKeys = append(slices.Clone(SecretDataFields), "binaryData")

// Hold implements Kind.
func (content) Hold(_, _ *unstructured.Unstructured, _ Author) (Patch, error) { return nil, nil }

// Release implements Kind.
func (content) Release(*unstructured.Unstructured) Patch { return nil }

// Held implements Kind.
func (content) Held(object *unstructured.Unstructured) bool { return IsRemote(object) }

// Reflect implements Kind.
func (content) Reflect(*unstructured.Unstructured, Observation) map[string]any { return nil }

func (content) removeHubFields(template *unstructured.Unstructured, _ Intent) {
	RemoveContent(template)
	setAnnotations(template, nil)
}

func (content) reportsObservedGeneration() bool { return false }

// HasContent tells the kinds that are all content: Secrets and ConfigMaps. Only
// their metadata is kept in memory.
func HasContent(gvk schema.GroupVersionKind) bool {
	return gvk.GroupVersion() == corev1.SchemeGroupVersion && (gvk.Kind == SecretKind || gvk.Kind == ConfigMapKind)
}

// RemoveContent takes out of a Secret or ConfigMap what is in it, and what kubectl
// remembers of that, and returns the fields that it took. Objects of other kinds
// stay as they are.
func RemoveContent(object *unstructured.Unstructured) map[string]any {
	if object == nil || !HasContent(object.GroupVersionKind()) {
		return nil
	}
	var taken map[string]any
	for _, field := range contentKeys {
		value, has := object.Object[field]
		if !has {
			continue
		}
		if taken == nil {
			taken = map[string]any{}
		}
		taken[field] = value
		delete(object.Object, field)
	}
	remove(object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return taken
}

// ContentFields lists the fields of an object that Strip would take.
func ContentFields(object *unstructured.Unstructured) []string {
	var out []string
	for _, field := range contentKeys {
		if _, has := object.Object[field]; has && HasContent(object.GroupVersionKind()) {
			out = append(out, field)
		}
	}
	return out
}

// CachedObject returns an empty object of what is kept in memory of a kind: all of
// it, or the metadata alone.
func CachedObject(k Kind) interface {
	metav1.Object
	runtime.Object
} {
	if !HasContent(k.GroupVersionKind()) {
		return New(k)
	}
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(k.GroupVersionKind())
	return out
}
