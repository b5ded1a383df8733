// Package jobstatus computes the next status of a Job on the hub from the one on the target.
//
// For a Job with spec.managedBy the API server accepts only a status that a Job
// controller could write next: counters do not fall, an end is decided once, and a
// finished Job does not change. A Job that starts again, after a move between targets or
// because somebody deleted it there, begins with a status that violates these rules.
package jobstatus

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-io/portico/api/kinds/fields"
)

// Next returns the status that follows on the current one when the target
// reports remote, which is nil while nothing was observed.
func Next(native *unstructured.Unstructured, current, remote map[string]any) map[string]any {
	if remote == nil {
		return current
	}
	next := runtime.DeepCopyJSON(remote)
	if last, decided := Finish(current); decided && !hasTrue(next, decisionOf(current)) {
		return last // the Job was started again after its end was decided
	}
	keepStartTime(native, current, next)
	notBelow(next, current, "failed")
	if !isElastic(native) {
		notBelow(next, current, "succeeded")
	}
	if IsFinished(next) {
		next, _ = Finish(next)
		return next
	}
	delete(next, "completionTime")
	return next
}

// Finish returns the last status of a Job whose end is decided, and true. The end of a Job is decided by the conditions FailureTarget
// and SuccessCriteriaMet, while Pods of it may still run.
func Finish(status map[string]any) (map[string]any, bool) {
	decision, end := decisionOf(status), batchv1.JobComplete
	if decision == "" {
		return nil, false
	}
	if decision == batchv1.JobFailureTarget {
		end = batchv1.JobFailed
	}
	last := runtime.DeepCopyJSON(status)
	at := completeConditions(last, decision, end) // a Job controller before 1.31 writes the end alone
	if _, found := last["startTime"]; !found {
		last["startTime"] = at
	}
	delete(last, "active")
	for _, count := range []string{"ready", "terminating"} {
		if _, found := last[count]; found {
			last[count] = int64(0)
		}
	}
	if _, found := last["uncountedTerminatedPods"]; found {
		last["uncountedTerminatedPods"] = map[string]any{}
	}
	if end == batchv1.JobFailed {
		delete(last, "completionTime")
		return last, true
	}
	if _, found := last["completionTime"]; !found {
		last["completionTime"] = at
	}
	if isBefore(last["completionTime"], last["startTime"]) { // it started on a target with another clock
		last["completionTime"] = last["startTime"]
	}
	return last, true
}

// decisionOf returns the condition that decides the end of a Job, or "".
func decisionOf(status map[string]any) batchv1.JobConditionType {
	switch {
	case hasTrue(status, batchv1.JobFailed), hasTrue(status, batchv1.JobFailureTarget):
		return batchv1.JobFailureTarget
	case hasTrue(status, batchv1.JobComplete), hasTrue(status, batchv1.JobSuccessCriteriaMet):
		return batchv1.JobSuccessCriteriaMet
	}
	return ""
}

// IsFinished tells whether a Job has ended.
func IsFinished(status map[string]any) bool {
	return hasTrue(status, batchv1.JobComplete) || hasTrue(status, batchv1.JobFailed)
}

// keepStartTime keeps the time at which a Job was first started, unless it is, or was,
// suspended.
func keepStartTime(native *unstructured.Unstructured, current, next map[string]any) {
	started, found := current["startTime"]
	suspended, _, _ := unstructured.NestedBool(native.Object, "spec", "suspend")
	resumes := hasTrue(current, batchv1.JobSuspended) && conditionStatus(next, batchv1.JobSuspended) == "False"
	if found && !suspended && !resumes {
		next["startTime"] = started
	}
}

// isElastic tells whether the number of completions may be lowered together with the
// parallelism, and the counter of successes with it.
func isElastic(native *unstructured.Unstructured) bool {
	mode, _, _ := unstructured.NestedString(native.Object, "spec", "completionMode")
	completions, has, _ := unstructured.NestedInt64(native.Object, "spec", "completions")
	parallelism, _, _ := unstructured.NestedInt64(native.Object, "spec", "parallelism")
	return mode == string(batchv1.IndexedCompletion) && has && completions == parallelism
}

// notBelow raises a counter to its current value.
func notBelow(next, current map[string]any, count string) {
	least, _, _ := unstructured.NestedInt64(current, count)
	if n, _, _ := unstructured.NestedInt64(next, count); n < least {
		next[count] = least
	}
}

// conditionStatus returns the status of a condition, or "".
func conditionStatus(status map[string]any, kind batchv1.JobConditionType) string {
	for _, condition := range fields.Items(status["conditions"]) {
		if condition["type"] == string(kind) {
			value, _ := condition["status"].(string)
			return value
		}
	}
	return ""
}

func hasTrue(status map[string]any, kind batchv1.JobConditionType) bool {
	return kind != "" && conditionStatus(status, kind) == "True"
}

// completeConditions makes two conditions true of which one is, with its time, reason and
// message. It returns the time.
func completeConditions(status map[string]any, a, b batchv1.JobConditionType) any {
	from, to := a, b
	if !hasTrue(status, from) {
		from, to = b, a
	}
	var source map[string]any
	var conditions []any
	for _, condition := range fields.Items(status["conditions"]) {
		if condition["type"] == string(from) {
			source = condition
		}
		if condition["type"] != string(to) || hasTrue(status, to) {
			conditions = append(conditions, condition)
		}
	}
	if !hasTrue(status, to) {
		added := runtime.DeepCopyJSON(source)
		added["type"] = string(to)
		conditions = append(conditions, added)
	}
	status["conditions"] = conditions
	return source["lastTransitionTime"]
}

// isBefore compares two times in RFC 3339.
func isBefore(a, b any) bool {
	x, _ := a.(string)
	y, _ := b.(string)
	first, err := time.Parse(time.RFC3339, x)
	second, failed := time.Parse(time.RFC3339, y)
	return err == nil && failed == nil && first.Before(second)
}
