package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RunsOnce is a Kind whose objects run to an end, such as a Job. A finished object does
// not run again, on any target.
type RunsOnce interface {
	Kind

	// Finish returns the last status of an object whose end is decided, and true. decided
	// is false for a status after which the object still runs.
	Finish(status map[string]any) (last map[string]any, decided bool)

	// Deleted returns the last status of an object that was deleted on its target before
	// its end, and true. ends is false for a kind whose object is applied again.
	Deleted(status map[string]any) (last map[string]any, ends bool)
}

// DeletedStatus returns the last status of an object that was deleted on its target, and
// false for an object that is applied again.
func DeletedStatus(k Kind, status map[string]any) (map[string]any, bool) {
	once, ok := k.(RunsOnce)
	if !ok || status == nil {
		return nil, false
	}
	return once.Deleted(status)
}

// ReasonDeletedOnTarget is the reason in the status of a Pod that was deleted on its
// target before its end.
const ReasonDeletedOnTarget = "DeletedOnTarget"

// IsDeletedOnTarget tells whether a status is one of DeletedStatus.
func IsDeletedOnTarget(status map[string]any) bool { return status["reason"] == ReasonDeletedOnTarget }

// FinishedStatus returns the last status of an object that does not run any more, and
// false for an object that runs, or of a kind that runs for ever.
func FinishedStatus(k Kind, status map[string]any) (map[string]any, bool) {
	once, ok := k.(RunsOnce)
	if !ok || status == nil {
		return nil, false
	}
	return once.Finish(status)
}

// IsFinished tells whether an object does not run any more, by its status.
func IsFinished(object *unstructured.Unstructured) bool {
	k, known := For(object.GroupVersionKind())
	if !known {
		return false
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	_, finished := FinishedStatus(k, status)
	return finished
}

// Retainer is a Kind of which a target adds values to lists that are sent as a whole.
type Retainer interface {
	Kind

	// Retain adds to the desired object the values that the target added to the observed
	// one.
	Retain(desired, observed *unstructured.Unstructured)
}

// Retain adds to a desired object the values that the target added to the observed one.
func Retain(desired, observed *unstructured.Unstructured) {
	if k, known := For(desired.GroupVersionKind()); known && observed != nil {
		if retainer, ok := k.(Retainer); ok {
			retainer.Retain(desired, observed)
		}
	}
}

// IsSuspended tells whether an object is a Job that waits until it is resumed.
func IsSuspended(object *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(object.Object, suspendPath...)
	return suspended && object.GroupVersionKind() == (Job{}).GroupVersionKind()
}
