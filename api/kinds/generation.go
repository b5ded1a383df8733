package kinds

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/portico-io/portico/api/kinds/observed"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// HubGeneration returns the generation of the native object on the hub that the
// annotation of an object has, or 0. On a KubernetesApplicationResource it is the
// generation that was projected last. On its template, and on the object on the target,
// it is the generation of the last change. The two differ, because the generation of a
// Deployment also counts changes that are not sent, such as those of kubectl's record
// of the applied object.
func HubGeneration(object metav1.Object) int64 {
	stamp, err := strconv.ParseInt(object.GetAnnotations()[v1alpha1.HubGenerationAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return stamp
}

// EqualExceptGeneration tells whether two templates, in JSON, differ at most in the
// hub's generation.
func EqualExceptGeneration(a, b []byte) bool {
	var x, y map[string]any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	for _, template := range []map[string]any{x, y} {
		unstructured.RemoveNestedField(template, "metadata", "annotations", v1alpha1.HubGenerationAnnotation)
		dropEmpty(&unstructured.Unstructured{Object: template}, "metadata", "annotations")
	}
	return equality.Semantic.DeepEqual(x, y)
}

// ObservedHubGeneration returns the hub's generation that an object on the target has
// fully observed: the one in its annotation, if its controller there has observed the
// object's own generation. It is 0 otherwise, and without the annotation. When the
// target has observed the template of a resource, it has observed the generation that
// was projected last.
func ObservedHubGeneration(resource, template metav1.Object, remote *unstructured.Unstructured) int64 {
	stamp := HubGeneration(remote)
	status, _, _ := unstructured.NestedMap(remote.Object, "status")
	newest, reports := observed.Newest(status)
	if k, ok := For(remote.GroupVersionKind()); ok && !isCustom(k) {
		reports = k.reportsObservedGeneration()
	}
	switch {
	case reports && newest < remote.GetGeneration():
		return 0
	case stamp != 0 && stamp == HubGeneration(template):
		return max(stamp, HubGeneration(resource))
	}
	return stamp
}
