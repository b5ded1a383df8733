// Package events emits events on the object that the user applied.
package events

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Recorder emits events on objects of the hub.
type Recorder = events.EventRecorder

// Event is one event of an object.
type Event struct {
	Warning bool
	Reason  string
	Note    string
}

// emittedConditions are the conditions whose changes become events, in their order.
var emittedConditions = []string{v1alpha1.Scheduled, v1alpha1.TargetReachable, v1alpha1.Synced, v1alpha1.Ready}

// OfConditions returns the events of changed conditions: failures and recoveries.
// Transient reasons, such as Connecting and Progressing, have no event.
func OfConditions(before, after []metav1.Condition) []Event {
	var out []Event
	for _, kind := range emittedConditions {
		was, is := meta.FindStatusCondition(before, kind), meta.FindStatusCondition(after, kind)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
			continue
		}
		var event *Event
		switch is.Status {
		case metav1.ConditionTrue:
			event = successEvent(was, is)
		case metav1.ConditionFalse:
			event = failureEvent(was, is)
		}
		if event != nil {
			out = append(out, *event)
		}
	}
	return out
}

// successEvent returns the event of a condition that became true; nil if it was true.
// TargetReachable has an event only after an outage.
func successEvent(was, is *metav1.Condition) *Event {
	switch {
	case was != nil && was.Status == metav1.ConditionTrue:
		return nil
	case is.Type != v1alpha1.TargetReachable:
		return &Event{Reason: is.Reason, Note: is.Message}
	case was == nil || was.Status != metav1.ConditionFalse:
		return nil
	default:
		return &Event{Reason: v1alpha1.EventRecovered, Note: is.Message + " again"}
	}
}

// failureEvent returns the event of a condition that is false; nil if the reason is
// transient.
func failureEvent(was, is *metav1.Condition) *Event {
	if isTransient(is.Type, is.Reason) {
		return nil
	}
	// An outage has one event, because its message may change with each probe, and
	// between two clients of the same target.
	if is.Type == v1alpha1.TargetReachable && was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return &Event{Warning: true, Reason: is.Reason, Note: is.Message}
}

func isTransient(kind, reason string) bool {
	switch reason {
	case v1alpha1.ReasonApplying, v1alpha1.ReasonConnecting, v1alpha1.ReasonNotScheduled,
		v1alpha1.ReasonProgressing, v1alpha1.ReasonWithdrawing, v1alpha1.ReasonPartiallyApplied:
		return true
	}
	return kind == v1alpha1.Ready && reason != v1alpha1.ReasonFailed
}

// Emit records events on an object.
func Emit(recorder Recorder, regarding runtime.Object, action string, list ...Event) {
	for _, e := range list {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		recorder.Eventf(regarding, nil, kind, e.Reason, action, "%s", policies.Shorten(e.Note, maxNote))
	}
}

// maxNote is the longest note that the API server accepts, in bytes.
const maxNote = 1024

// Regarding returns the object on which the events of a resource are emitted: the
// native object that controls it, else the resource itself.
func Regarding(resource *v1alpha1.KubernetesApplicationResource) client.Object {
	owner := metav1.GetControllerOf(resource)
	if owner == nil || resource.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor {
		return resource
	}
	native := &metav1.PartialObjectMetadata{}
	native.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	native.SetNamespace(resource.Namespace)
	native.SetName(owner.Name)
	native.SetUID(owner.UID)
	return native
}
