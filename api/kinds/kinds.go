package kinds

//go:generate go run ./generate ../..

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
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
	Hold(object, old *unstructured.Unstructured, by Author) (fields.Patch, error)

	// Release returns the changes that undo a hold, for an object whose label was
	// removed.
	Release(object *unstructured.Unstructured) fields.Patch

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
	// WithoutController is true if an object that has a controller is not sent, because
	// the object of its controller is.
	WithoutController bool
	// DeniesPods is true if the hub's controller of a held object may try to make Pods,
	// and is denied.
	DeniesPods bool
	// EnforcedOnHub says what the hub does with an object that is sent, for a warning; "" if
	// the hub runs nothing of it.
	EnforcedOnHub string
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
var All = []Kind{
	Deployment{}, ReplicaSet{}, ReplicationController{}, DaemonSet{}, StatefulSet{},
	Job{}, CronJob{}, Pod{},
	Service{}, Ingress{},
	PersistentVolumeClaim{},
	HorizontalPodAutoscaler{},
	PodDisruptionBudget{},
	NetworkPolicy{}, ResourceQuota{}, LimitRange{},
	Secret{}, ConfigMap{},
}

// For returns the kind of a native object, and false for a kind that is not in the
// registry. A kind that a PropagationKind added is found in any version.
func For(gvk schema.GroupVersionKind) (Kind, bool) {
	for _, k := range All {
		if k.GroupVersionKind() == gvk {
			return k, true
		}
	}
	if c, known := customFor(gvk); known {
		return c, true
	}
	return nil, false
}

// New returns an empty object of the kind.
func New(k Kind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind())
	return u
}

// IsRemote tells whether an object is labelled to run on a target. The label has no
// effect on an object of a kind that is only sent without a controller.
func IsRemote(object *unstructured.Unstructured) bool {
	return object != nil && HasRemoteLabel(object) && !isControlled(object)
}

// immovable is a kind of which some objects cannot move between the hub and a target.
type immovable interface {
	// immovableReason returns why an object cannot move, and a remedy; "" if it can.
	immovableReason(object *unstructured.Unstructured) (reason, remedy string)
}

// MayBeImmovable tells whether a kind has objects that cannot move.
func MayBeImmovable(k Kind) bool {
	_, ok := k.(immovable)
	return ok
}

// ImmovableReason returns why an object cannot move between the hub and a target, and a
// remedy; "" if it can.
func ImmovableReason(k Kind, object *unstructured.Unstructured) (reason, remedy string) {
	if kind, ok := k.(immovable); ok {
		return kind.immovableReason(object)
	}
	return "", ""
}

// isControlled tells whether an object is not sent because it has a controller, or had
// one: a Deployment that is deleted with --cascade=orphan leaves its ReplicaSets.
func isControlled(object *unstructured.Unstructured) bool {
	_, ofDeployment := object.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]
	if !ofDeployment && metav1.GetControllerOfNoCopy(object) == nil {
		return false
	}
	kind, known := For(object.GroupVersionKind())
	return known && kind.Properties().WithoutController
}

// HasRemoteLabel tells whether an object has the label that schedules it remotely.
func HasRemoteLabel(object metav1.Object) bool {
	return object.GetLabels()[v1alpha1.ScheduleLabel] == v1alpha1.ScheduleRemote
}

// OptIn returns the label that a namespace which opts in gives an object: on create,
// and on an update without the label. An object with the value "local", or that was
// in the namespace before it opted in, is not changed. Only kinds with the property
// OptIn get the label.
func OptIn(object, old *unstructured.Unstructured) fields.Patch {
	if kind, known := For(object.GroupVersionKind()); !known || !kind.Properties().OptIn || isControlled(object) {
		return nil
	}
	if _, labelled := object.GetLabels()[v1alpha1.ScheduleLabel]; labelled {
		return nil
	}
	if old != nil && !IsRemote(old) {
		return nil
	}
	if object.GroupVersionKind() == (Pod{}).GroupVersionKind() && fields.String(object, "spec", "nodeName") != "" {
		return nil // of kubectl debug, or of a kubelet
	}
	return fields.Set(object, v1alpha1.ScheduleRemote, "metadata", "labels", v1alpha1.ScheduleLabel)
}

// Hold returns the changes that admission makes to an object that is labelled remote,
// or was before this change.
func Hold(k Kind, object, old *unstructured.Unstructured, by Author) (fields.Patch, error) {
	switch {
	case IsRemote(object):
		return k.Hold(object, old, by)
	case IsRemote(old):
		return k.Release(object), nil
	default:
		return nil, nil
	}
}
