package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Workload is a kind whose controller on the hub makes Pods of a template. An object is
// held by changes of its template. A new object is held at once. An object that runs on
// the hub is held when its object on the target is available.
type Workload interface {
	Kind

	// setHold returns the changes that hold an object. old is the stored object; nil on
	// create.
	setHold(object, old *unstructured.Unstructured) fields.Patch

	// removeHold returns the changes that undo setHold.
	removeHold(object *unstructured.Unstructured) fields.Patch
}

// podTemplate has the methods of a Workload that is held by the schedule label in its
// Pod template. A ValidatingAdmissionPolicy denies Pods with that label on the hub.
type podTemplate struct{}

// heldPath is the schedule label in a Pod template.
var heldPath = []string{"spec", "template", "metadata", "labels", v1alpha1.ScheduleLabel}

// Held implements Kind.
func (podTemplate) Held(object *unstructured.Unstructured) bool {
	return fields.String(object, heldPath...) == v1alpha1.ScheduleRemote
}

func (podTemplate) setHold(object, _ *unstructured.Unstructured) fields.Patch {
	return fields.Set(object, v1alpha1.ScheduleRemote, heldPath...)
}

func (podTemplate) removeHold(object *unstructured.Unstructured) fields.Patch {
	return fields.Remove(object, heldPath...)
}

func (podTemplate) removeHubFields(template *unstructured.Unstructured, _ Intent) {
	unstructured.RemoveNestedField(template.Object, heldPath...)
	dropEmpty(template, "spec", "template", "metadata", "labels")
	unstructured.RemoveNestedField(template.Object, "spec", "template", "metadata", "creationTimestamp")
}

func (podTemplate) reportsObservedGeneration() bool { return true }

// holdWorkload returns the changes of admission to an object with the label. An object
// that runs on the hub is not held by the change that labels it: its Pods would end
// before those on the target are available. Intake holds it when they are.
func holdWorkload(w Workload, object, old *unstructured.Unstructured, by Author) (fields.Patch, error) {
	switch {
	case old == nil:
		return append(w.setHold(object, nil), removeIntent(object)...), nil
	case IsRemote(old) && by == Portico:
		return nil, nil // intake moves it, and records that itself
	}
	intent, err := intentBefore(object, old)
	switch {
	case err != nil:
		return nil, err
	case !IsRemote(old), !w.Held(old):
		return append(w.removeHold(object), Intent{Moving: true}.annotate(object)...), nil
	case intent.Moving:
		return append(w.setHold(object, old), intent.annotate(object)...), nil
	default:
		return append(w.setHold(object, old), removeIntent(object)...), nil
	}
}

func releaseWorkload(w Workload, object *unstructured.Unstructured) fields.Patch {
	return append(w.removeHold(object), removeIntent(object)...)
}

// SetHeld returns a held copy of an object that moves to a target. moving records that
// the hub still has Pods of it to stop.
func SetHeld(w Workload, object *unstructured.Unstructured, moving bool) *unstructured.Unstructured {
	out := object.DeepCopy()
	w.setHold(out, object)
	if moving {
		Intent{Moving: true}.annotate(out)
	} else {
		removeIntent(out)
	}
	return out
}

// reflectReplicas returns the status of a kind that counts replicas, without conditions.
// The counts are the target's, all from one observation. A value that the hub's
// controller wrote without the shield is replaced.
func reflectReplicas(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := targetStatus(native, seen)
	for _, count := range []string{"fullyLabeledReplicas", "updatedReplicas", "currentReplicas", "readyReplicas"} {
		atMost(status, count, "replicas")
	}
	atMost(status, "availableReplicas", "readyReplicas")
	return status
}

// targetStatus returns the status of the target without conditions and without the count
// of hash collisions, which is of the target's controller. observedGeneration is the
// hub's generation that the target has fully observed, because the two clusters count
// generations independently.
func targetStatus(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := map[string]any{}
	for key, value := range seen.Status {
		switch key {
		case "observedGeneration", "collisionCount", "conditions":
		default:
			status[key] = value
		}
	}
	if observed := min(seen.HubGeneration, native.GetGeneration()); observed > 0 {
		status["observedGeneration"] = observed
	}
	return status
}

// keepOwn keeps a field of the status that the hub's controller writes.
func keepOwn(status map[string]any, native *unstructured.Unstructured, field string) {
	if value, found, _ := unstructured.NestedFieldCopy(native.Object, "status", field); found {
		status[field] = value
	}
}

// requireCounts sets the counts that a status always has.
func requireCounts(status map[string]any, counts ...string) {
	for _, count := range counts {
		if _, found := status[count]; !found {
			status[count] = int64(0)
		}
	}
}

// setConditions sets the conditions of the target and those of problems. times are the
// fields of a condition that have its time.
func setConditions(status map[string]any, seen Observation, times ...string) {
	conditions, _ := WithoutProblems(&unstructured.Unstructured{Object: map[string]any{"status": seen.Status}})
	for _, problem := range seen.Problems {
		condition := map[string]any{
			"type":    problem.Type,
			"status":  string(problem.Status),
			"reason":  problem.Reason,
			"message": problem.Message,
		}
		for _, field := range times {
			condition[field] = rfc3339(problem.LastTransitionTime)
		}
		conditions = append(conditions, condition)
	}
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
}

// atMost lowers a count to its limit, because the API server refuses a higher one. A
// count of zero is left out, as the API server does.
func atMost(status map[string]any, count, limit string) {
	n, _, _ := unstructured.NestedInt64(status, count)
	highest, _, _ := unstructured.NestedInt64(status, limit)
	switch {
	case n <= highest:
	case highest == 0:
		delete(status, count)
	default:
		status[count] = highest
	}
}
