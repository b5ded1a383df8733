package kinds

//go:generate go run ./generate ../..

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

	// Properties of the kind.
	Properties() Properties

	// Hold returns the changes after which the hub runs nothing of an object that
	// is labelled remote. old is nil on create. A malformed value of the object is a
	// field error.
	Hold(object, old *unstructured.Unstructured, by Author) (Patch, error)

	// Release returns the changes that undo a hold, for an object whose label was
	// removed.
	Release(object *unstructured.Unstructured) Patch

	// Held tells whether the hub runs nothing of the object. Portico then writes its
	// status.
	Held(object *unstructured.Unstructured) bool

	// removeHubFields removes from a projected template the fields that have a meaning
	// on the hub only.
	removeHubFields(template *unstructured.Unstructured, intent Intent)

	// reportsObservedGeneration tells whether the kind's controller reports
	// status.observedGeneration.
	reportsObservedGeneration() bool

	// Reflect returns the status the native object should have on the hub.
	Reflect(native *unstructured.Unstructured, seen Observation) map[string]any
}

// Properties are the facts about a kind from which webhook rules, roles, watches and
// the docs are derived.
type Properties struct {
	// OptIn is true if the label of a namespace opts in the objects of the kind. Objects
	// of other kinds opt in by a label of their own.
	OptIn bool
	// Held is true if Hold changes objects.
	Held bool
	// HeldAtCreation is true if an object is held from its creation on or never. It does
	// not move from the hub to a target.
	HeldAtCreation bool
	// HasStatus is true if the hub shows the status of the object on the target.
	HasStatus bool
	// HasScale is true if the API has the subresource scale.
	HasScale bool
	// Sent and NotSent describe the projection, for the table of kinds in the docs.
	Sent, NotSent string
}

// Author is the author of a change.
type Author bool

// The two authors that admission distinguishes.
const (
	Portico Author = true
	Anyone  Author = false
)

// All is the registry of the native kinds that may run on a target. `make manifests`
// derives webhook rules, roles and the docs from it.
var All = []Kind{Deployment{}, Service{}, Secret{}, ConfigMap{}, Job{}, CronJob{}, Pod{}}

// For returns the kind of a native object, and false for a kind that is not in the
// registry.
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

// OptIn returns the label that a namespace which opts in gives an object: on create,
// and on an update without the label. An object with the value "local", or that was
// in the namespace before it opted in, is not changed. Only kinds with the property
// OptIn get the label.
func OptIn(object, old *unstructured.Unstructured) Patch {
	if kind, known := For(object.GroupVersionKind()); !known || !kind.Properties().OptIn {
		return nil
	}
	if _, labelled := object.GetLabels()[v1alpha1.ScheduleLabel]; labelled {
		return nil
	}
	if old != nil && !IsRemote(old) {
		return nil
	}
	if object.GroupVersionKind() == (Pod{}).GroupVersionKind() && nestedString(object, "spec", "nodeName") != "" {
		return nil // of kubectl debug, or of a kubelet
	}
	return set(object, v1alpha1.ScheduleRemote, "metadata", "labels", v1alpha1.ScheduleLabel)
}

// Hold returns the changes that admission makes to an object that is labelled remote,
// or was before this change.
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
