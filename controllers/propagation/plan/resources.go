package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// ConditionTrueOn tells whether a condition is true for the newest generation of a
// resource, on a target.
func ConditionTrueOn(resource *v1alpha1.KubernetesApplicationResource, target, condition string) bool {
	c := meta.FindStatusCondition(resource.Status.Conditions, condition)
	return resource.Status.Target == target && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration >= resource.Generation
}

// RefersTo tells whether a reference names a target.
func RefersTo(ref *v1alpha1.TargetReference, target types.NamespacedName) bool {
	return ref != nil && ref.Name == target.Name
}

// MetadataOf returns an object of a kind for requests of metadata only.
func MetadataOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(gvk)
	return out
}
