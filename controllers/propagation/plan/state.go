package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// State compares an object on a target with the desired object.
type State string

// The states of an object.
const (
	// Absent is the state of an object that does not exist.
	Absent State = "Absent"
	// InSync is the state of an object that agrees with the desired one.
	InSync State = "InSync"
	// Drifted is the state of an object that the resource owns, and that differs from
	// the desired one.
	Drifted State = "Drifted"
	// Foreign is the state of an object that the resource does not own.
	Foreign State = "Foreign"
	// Adoptable is the state of an object that the resource does not own, and adopts.
	Adoptable State = "Adoptable"
	// Shared is the state of an object that another resource of the same native object
	// owns: the targets of both are one cluster.
	Shared State = "Shared"
	// NativeObject is the state of the native object for which the resource exists: the
	// target is this hub, and the template has the same namespace.
	NativeObject State = "NativeObject"
)

// Owned tells whether the resource owns the object.
func (s State) Owned() bool { return s == InSync || s == Drifted }

// StateOf returns the state of an object. observed is nil if the object does not exist.
func StateOf(desired, observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource, hubID string) State {
	switch {
	case observed == nil:
		return Absent
	case isNativeObject(observed, resource):
		return NativeObject
	case !IsOwned(observed, resource, hubID) && adopts(observed, resource):
		return Adoptable
	case !IsOwned(observed, resource, hubID):
		return Foreign
	case DigestOf(desired) != DigestOf(observed), len(DifferingPaths(desired.Object, observed.Object)) > 0:
		return Drifted
	default:
		return InSync
	}
}

// isNativeObject tells whether an object on a target is the native object that controls
// the resource. UIDs are unique across clusters.
func isNativeObject(observed *unstructured.Unstructured, resource metav1.Object) bool {
	native := metav1.GetControllerOf(resource)
	return native != nil && native.UID != "" && native.UID == observed.GetUID()
}
