package kinds

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-io/portico/api/kinds/groups"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// hubAnnotations are written by clients and controllers for the hub alone.
var hubAnnotations = []string{
	corev1.LastAppliedConfigAnnotation,
}

// Project returns the object to send to a target: the values of the user, without those
// that the hub allocated or Portico added, and with the hub's generation as an
// annotation. It returns a *field.Error when the recorded intent is malformed. It does
// not change native.
func Project(k Kind, native *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	intent, _, err := IntentOf(native)
	if err != nil {
		return nil, err
	}
	template := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range native.DeepCopy().Object {
		if key != "metadata" && key != "status" {
			template.Object[key] = value
		}
	}
	template.SetGroupVersionKind(k.GroupVersionKind())
	annotations := projectMetadata(template, native)
	if generation := native.GetGeneration(); generation > 0 && k.reportsObservedGeneration() {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.HubGenerationAnnotation] = strconv.FormatInt(generation, 10)
	}
	setAnnotations(template, annotations)
	k.removeHubFields(template, intent)
	return template, nil
}

// projectMetadata sets the name, the namespace and the labels of a template. It returns the
// annotations of the native object that are sent.
func projectMetadata(template *unstructured.Unstructured, native metav1.Object) (annotations map[string]string) {
	template.SetName(native.GetName())
	template.SetNamespace(native.GetNamespace())
	labels := maps.Clone(native.GetLabels())
	maps.DeleteFunc(labels, func(key, _ string) bool { return isPorticoKey(key) })
	if len(labels) > 0 {
		template.SetLabels(labels)
	}
	annotations = maps.Clone(native.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return isPorticoKey(key) })
	for _, key := range hubAnnotations {
		delete(annotations, key)
	}
	return annotations
}

// ResourceNameOf names the KubernetesApplicationResource of a native object by its group
// and kind. The name of a custom kind has the group, because the kinds of two groups may
// have the same name.
func ResourceNameOf(kind schema.GroupKind, name string) string {
	if groups.IsBuiltIn(kind.Group) {
		return ResourceName(kind.Kind, name)
	}
	return ResourceName(kind.String(), name)
}

// ResourceName names the KubernetesApplicationResource of an object of a built-in kind:
// "<object>-<kind in lower case>". The kind has no dash, so no two objects share a name.
// A name that would be too long is cut, and gets a hash.
func ResourceName(kind, name string) string {
	suffix := "-" + strings.ToLower(kind)
	if len(name)+len(suffix) <= validation.DNS1123SubdomainMaxLength {
		return name + suffix
	}
	hash := fnv.New64a()
	hash.Write([]byte(name))
	tail := fmt.Sprintf("-%016x", hash.Sum64())
	cut := strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-len(suffix)-len(tail)], "-.")
	return cut + tail + suffix
}

func setAnnotations(object *unstructured.Unstructured, annotations map[string]string) {
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
		return
	}
	object.SetAnnotations(annotations)
}

func dropEmpty(object *unstructured.Unstructured, path ...string) {
	if value, found, _ := unstructured.NestedMap(object.Object, path...); found && len(value) == 0 {
		unstructured.RemoveNestedField(object.Object, path...)
	}
}
