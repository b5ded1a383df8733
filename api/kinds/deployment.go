package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Deployment is held by the label in its Pod template: the ReplicaSets that the hub
// makes of it have the label, and are pinned to no replicas (replicaset.go). The
// Deployment is not paused, because "paused" has another meaning for Argo CD, Helm and
// the rollout commands of kubectl.
type Deployment struct{}

var _ Kind = Deployment{}

var heldPath = []string{"spec", "template", "metadata", "labels", v1alpha1.ScheduleLabel}

// GroupVersionKind implements Kind.
func (Deployment) GroupVersionKind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("Deployment")
}

// Resource implements Kind.
func (Deployment) Resource() string { return "deployments" }

// Properties implements Kind.
func (Deployment) Properties() Properties {
	return Properties{
		OptIn: true, Held: true, HasStatus: true, HasScale: true,
		Sent:    "the spec you wrote",
		NotSent: "`replicas`, when an autoscaler on the target sets them",
	}
}

// Hold implements Kind. A Deployment that runs on the hub is not held by the change that
// labels it: its Pods would end before those on the target are available. Intake holds
// it when they are.
func (d Deployment) Hold(object, old *unstructured.Unstructured, by Author) (Patch, error) {
	hold := func() Patch { return set(object, v1alpha1.ScheduleRemote, heldPath...) }

	switch {
	case old == nil:
		return append(hold(), removeIntent(object)...), nil
	case IsRemote(old) && by == Portico:
		return nil, nil // intake moves it, and records that itself
	}
	intent, err := intentBefore(object, old)
	switch {
	case err != nil:
		return nil, err
	case !IsRemote(old), !d.Held(old):
		return append(remove(object, heldPath...), Intent{Moving: true}.annotate(object)...), nil
	case intent.Moving:
		return append(hold(), intent.annotate(object)...), nil
	default:
		return append(hold(), removeIntent(object)...), nil
	}
}

// Release implements Kind.
func (Deployment) Release(object *unstructured.Unstructured) Patch {
	return append(remove(object, heldPath...), removeIntent(object)...)
}

// Held implements Kind.
func (Deployment) Held(object *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedString(object.Object, heldPath...)
	return value == v1alpha1.ScheduleRemote
}

// SetHeld holds or releases a copy of a Deployment that moves, and records
// whether the hub still has Pods of it to stop.
func (Deployment) SetHeld(object *unstructured.Unstructured, moving bool) *unstructured.Unstructured {
	out := object.DeepCopy()
	set(out, v1alpha1.ScheduleRemote, heldPath...)
	if moving {
		Intent{Moving: true}.annotate(out)
	} else {
		removeIntent(out)
	}
	return out
}

func (Deployment) removeHubFields(template *unstructured.Unstructured, _ Intent) {
	annotations := template.GetAnnotations()
	delete(annotations, revisionAnnotation) // the hub's count
	setAnnotations(template, annotations)
	unstructured.RemoveNestedField(template.Object, heldPath...)
	dropEmpty(template, "spec", "template", "metadata", "labels")
	unstructured.RemoveNestedField(template.Object, "spec", "template", "metadata", "creationTimestamp")
}

func (Deployment) reportsObservedGeneration() bool { return true }

// Reflect implements Kind. The counts and conditions are the target's, all from one
// observation. observedGeneration is the hub's generation that the target has fully
// observed, because the two clusters count generations independently. The value that
// the hub's controller wrote without the shield is replaced. collisionCount is the
// hub controller's own.
func (Deployment) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	current, _, _ := unstructured.NestedMap(native.Object, "status")
	status := map[string]any{}
	for key, value := range seen.Status {
		switch key {
		case "observedGeneration", "collisionCount", "conditions":
		default:
			status[key] = value
		}
	}
	atMost(status, "updatedReplicas", "replicas")
	atMost(status, "readyReplicas", "replicas")
	atMost(status, "availableReplicas", "readyReplicas")
	if count, ok := current["collisionCount"]; ok {
		status["collisionCount"] = count
	}
	if observed := min(seen.HubGeneration, native.GetGeneration()); observed > 0 {
		status["observedGeneration"] = observed
	}
	conditions, _ := WithoutProblems(&unstructured.Unstructured{Object: map[string]any{"status": seen.Status}})
	for _, problem := range seen.Problems {
		conditions = append(conditions, map[string]any{
			"type":               problem.Type,
			"status":             string(problem.Status),
			"reason":             problem.Reason,
			"message":            problem.Message,
			"lastTransitionTime": rfc3339(problem.LastTransitionTime),
			"lastUpdateTime":     rfc3339(problem.LastTransitionTime),
		})
	}
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return status
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
