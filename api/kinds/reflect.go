package kinds

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Observation is the state of the object on the target, as its
// KubernetesApplicationResource has it.
type Observation struct {
	// Status of the object on the target; nil while none was seen.
	Status map[string]any
	// HubGeneration is the hub's generation that Status has observed.
	HubGeneration int64
	// HubRevision is the name of the ControllerRevision on the hub that has the Pod template
	// of a StatefulSet, or "".
	HubRevision string
	// Problems are the conditions to show on the native object.
	Problems []metav1.Condition
}

// problemTypes are the conditions of a KubernetesApplicationResource that are
// shown on its native object while they are false.
var problemTypes = []string{v1alpha1.Scheduled, v1alpha1.TargetReachable, v1alpha1.Synced}

// Problems selects, in a fixed order, the conditions of a resource that its native object
// shows: those of a problem. A native object without a problem has the conditions of its
// kind and no others.
func Problems(conditions []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, kind := range problemTypes {
		i := slices.IndexFunc(conditions, func(c metav1.Condition) bool {
			return c.Type == kind && c.Status == metav1.ConditionFalse && !isTransient(c.Reason)
		})
		if i >= 0 {
			out = append(out, conditions[i])
		}
	}
	return out
}

// isTransient tells whether a reason is a step towards the target rather than a problem.
func isTransient(reason string) bool {
	switch reason {
	case v1alpha1.ReasonNotScheduled, v1alpha1.ReasonConnecting, v1alpha1.ReasonApplying:
		return true
	}
	return false
}

// WithoutProblems returns an object's status conditions less those that Portico
// writes, and whether there were any.
func WithoutProblems(object *unstructured.Unstructured) (conditions []any, found bool) {
	all, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range all {
		condition, _ := c.(map[string]any)
		if name, _ := condition["type"].(string); slices.Contains(problemTypes, name) {
			found = true
			continue
		}
		conditions = append(conditions, c)
	}
	return conditions, found
}

// statusWithoutProblems returns a copy of an object's status without the conditions that
// Portico writes.
func statusWithoutProblems(object *unstructured.Unstructured) map[string]any {
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	if conditions, found := WithoutProblems(object); found {
		status["conditions"] = conditions
	}
	if conditions, _ := status["conditions"].([]any); len(conditions) == 0 {
		delete(status, "conditions")
	}
	return status
}

// appendProblems adds problems to the conditions of a status.
func appendProblems(status map[string]any, problems []metav1.Condition) {
	conditions, _ := status["conditions"].([]any)
	for _, problem := range problems {
		conditions = append(conditions, map[string]any{
			"type":               problem.Type,
			"status":             string(problem.Status),
			"reason":             problem.Reason,
			"message":            problem.Message,
			"lastTransitionTime": rfc3339(problem.LastTransitionTime),
		})
	}
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
}

func rfc3339(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }
