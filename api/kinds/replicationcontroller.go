package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
)

// ReplicationController is held as ReplicaSet is.
type ReplicationController struct{ podTemplate }

var _ Workload = ReplicationController{}

// GroupVersionKind implements Kind.
func (ReplicationController) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("ReplicationController")
}

// Resource implements Kind.
func (ReplicationController) Resource() string { return "replicationcontrollers" }

// Properties implements Kind.
func (ReplicationController) Properties() Properties { return ReplicaSet{}.Properties() }

// Hold implements Kind.
func (r ReplicationController) Hold(object, old *unstructured.Unstructured, by Author) (fields.Patch, error) {
	return holdWorkload(r, object, old, by)
}

// Release implements Kind.
func (r ReplicationController) Release(object *unstructured.Unstructured) fields.Patch {
	return releaseWorkload(r, object)
}

// Reflect implements Kind.
func (ReplicationController) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	return ReplicaSet{}.Reflect(native, seen)
}
