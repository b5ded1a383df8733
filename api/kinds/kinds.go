package kinds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Kind is one native kind that may run on a target.
type Kind interface {
	// GroupVersionKind of the native objects.
	GroupVersionKind() schema.GroupVersionKind

	// Resource is the plural name in the API, such as "deployments".
	Resource() string

	// Hold returns the changes that keep an object labelled remote still on
	// the hub. old is nil on create. It fails with a field error when a value
	// it must build on is malformed.
	Hold(object, old *unstructured.Unstructured, by Author) (Patch, error)

	// Release returns the changes that let go of an object whose label was
	// removed.
	Release(object *unstructured.Unstructured) Patch

	// Held tells whether the hub runs nothing of the object, so that its
	// status is Portico's to write.
	Held(object *unstructured.Unstructured) bool

	// removeHubFields removes from a projected template what only means something on
	// the hub.
	removeHubFields(template *unstructured.Unstructured, intent Intent)

	// reportsObservedGeneration tells whether the kind's controller reports
	// status.observedGeneration.
	reportsObservedGeneration() bool

	// Reflect returns the status the native object should have on the hub.
	Reflect(native *unstructured.Unstructured, seen Observation) map[string]any
}

// Author is who makes a change.
type Author bool

// The two authors that admission tells apart.
const (
	Portico Author = true
	Anyone  Author = false
)

// All are the native kinds that may run on a target.
var All = []Kind{Deployment{}, Service{}, Secret{}, ConfigMap{}}

// For returns the kind of a native object, and false when Portico leaves such
// objects alone.
func For(gvk schema.GroupVersionKind) (Kind, bool) {
	for _, k := range All {
		if k.GroupVersionKind() == gvk {
			return k, true
		}
	}
	return nil, false
}

// New returns an empty object of the kind.
func New(k Kind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind())
	return u
}

// IsRemote tells whether an object is labelled to run on a target.
func IsRemote(object *unstructured.Unstructured) bool { return object != nil && HasRemoteLabel(object) }

// HasRemoteLabel tells whether an object has the label that schedules it remotely.
func HasRemoteLabel(object metav1.Object) bool {
	return object.GetLabels()[v1alpha1.ScheduleLabel] == v1alpha1.ScheduleRemote
}

// OptIn returns the label that a namespace which opts in gives an object: on
// create, and on an update that would drop it without saying so. An object that
// says "local", or that was in the namespace before it opted in, stays as it is.
// Secrets and ConfigMaps speak for themselves: clusters and tools keep many in a
// namespace that are nobody else's business.
func OptIn(object, old *unstructured.Unstructured) Patch {
	if HasContent(object.GroupVersionKind()) {
		return nil
	}
	if _, labelled := object.GetLabels()[v1alpha1.ScheduleLabel]; labelled {
		return nil
	}
	if old != nil && !IsRemote(old) {
		return nil
	}
	return set(object, v1alpha1.ScheduleRemote, "metadata", "labels", v1alpha1.ScheduleLabel)
}

// Hold returns the changes admission makes to an object that is, or until this
// change was, labelled remote.
func Hold(k Kind, object, old *unstructured.Unstructured, by Author) (Patch, error) {
	switch {
	case IsRemote(object):
		return k.Hold(object, old, by)
	case IsRemote(old):
		return k.Release(object), nil
	default:
		return nil, nil
	}
}
