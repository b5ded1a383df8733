// Package events emits events on the object that the user applied.
package events

import (
	"slices"

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
	for _, change := range changes(before, after) {
		if event := change.event(); event != nil {
			out = append(out, *event)
		}
	}
	return out
}

// OfResource returns the events of the changed conditions of a resource. A resource that
// succeeds has one event, after its object was applied. The event names the application;
// "" is for a resource without an application. Conditions Scheduled and Ready that become
// true have an event only after a failure. failed and stillFailed are the conditions whose
// last event was a failure, before and after the change.
func OfResource(before, after []metav1.Condition, application string, failed []string) (_ []Event, stillFailed []string) {
	var out []Event
	failed = slices.Clone(failed)
	for _, change := range changes(before, after) {
		kind := change.is.Type
		event := change.event()
		success := change.is.Status == metav1.ConditionTrue
		switch recovered := slices.Contains(failed, kind) || change.endsFailure(); {
		case event == nil:
			continue
		case success && !recovered && kind != v1alpha1.Synced && kind != v1alpha1.TargetReachable:
			continue
		case success && kind == v1alpha1.Synced && application != "":
			event.Note = "application " + application + ": " + event.Note
		}
		failed = slices.DeleteFunc(failed, func(other string) bool { return other == kind })
		if !success {
			failed = append(failed, kind)
		}
		out = append(out, *event)
	}
	return out, failed
}

// change is a condition that changed. was is nil for a new one.
type change struct{ was, is *metav1.Condition }

// changes returns the changed conditions that may have an event.
func changes(before, after []metav1.Condition) []change {
	var out []change
	for _, kind := range emittedConditions {
		was, is := meta.FindStatusCondition(before, kind), meta.FindStatusCondition(after, kind)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
			continue
		}
		out = append(out, change{was, is})
	}
	return out
}

// event returns the event of a change; nil for a change without an event.
func (c change) event() *Event {
	switch c.is.Status {
	case metav1.ConditionTrue:
		return successEvent(c.was, c.is)
	case metav1.ConditionFalse:
		return failureEvent(c.was, c.is)
	}
	return nil
}

// endsFailure tells whether the condition was false before, for a reason that is not
// transient.
func (c change) endsFailure() bool {
	return c.was != nil && c.was.Status == metav1.ConditionFalse && !isTransient(c.was.Type, c.was.Reason)
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
