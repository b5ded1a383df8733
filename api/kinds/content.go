package kinds

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/kinds/references"
)

// content is the common part of Secret and ConfigMap. The hub runs nothing of them, so
// there is nothing to hold, and they have no status. Their data is not in their
// resource: more people may read a resource than a Secret, and a large ConfigMap would
// be stored twice. Propagation reads the data when it sends the object. Annotations are
// not sent, because tools keep copies of the data there. Labels are sent, because people
// select by them.
type content struct{}

// SecretDataFields are the fields of a Secret with its values.
var SecretDataFields = []string{"data", "stringData"}

// contentKeys are the fields of Secrets and ConfigMaps with their values.
var contentKeys = append(slices.Clone(SecretDataFields), "binaryData")

// Properties implements Kind. Clusters and tools keep many Secrets and ConfigMaps in a
// namespace, so these opt in by a label of their own.
func (content) Properties() Properties {
	return Properties{
		Sent:    "`data`, `binaryData`, `type`, `immutable`, labels",
		NotSent: "annotations: kubectl keeps copies of the data there",
	}
}

// Hold implements Kind.
func (content) Hold(_, _ *unstructured.Unstructured, _ Author) (fields.Patch, error) { return nil, nil }

// Release implements Kind.
func (content) Release(*unstructured.Unstructured) fields.Patch { return nil }

// Held implements Kind.
func (content) Held(object *unstructured.Unstructured) bool { return IsRemote(object) }

// Reflect implements Kind.
func (content) Reflect(*unstructured.Unstructured, Observation) map[string]any { return nil }

func (content) removeHubFields(template *unstructured.Unstructured, _ Intent) {
	RemoveContent(template)
	setAnnotations(template, nil)
}

func (content) reportsObservedGeneration() bool { return false }

// HasContent tells whether a kind is Secret or ConfigMap. Caches have only the metadata
// of these.
func HasContent(gvk schema.GroupVersionKind) bool {
	return gvk.GroupVersion() == corev1.SchemeGroupVersion && (gvk.Kind == references.SecretKind || gvk.Kind == references.ConfigMapKind)
}

// RemoveContent removes the data of a Secret or ConfigMap, and kubectl's record of it,
// and returns the removed fields. It does not change objects of other kinds.
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
	fields.Remove(object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return taken
}

// ContentFields lists the fields of an object that RemoveContent would remove.
func ContentFields(object *unstructured.Unstructured) []string {
	var out []string
	for _, field := range contentKeys {
		if _, has := object.Object[field]; has && HasContent(object.GroupVersionKind()) {
			out = append(out, field)
		}
	}
	return out
}

// CachedObject returns an empty object of the type that caches have of a kind: the whole
// object, or its metadata.
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
