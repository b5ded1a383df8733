package kinds

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// PodDisruptionBudget is held by the schedule label in its selector, which Pods that run
// on the hub do not have: their eviction must not depend on the target's status.
type PodDisruptionBudget struct{}

var _ Kind = PodDisruptionBudget{}

var budgetLabelPath = []string{"spec", "selector", "matchLabels", v1alpha1.ScheduleLabel}

// GroupVersionKind implements Kind.
func (PodDisruptionBudget) GroupVersionKind() schema.GroupVersionKind {
	return policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
}

// Resource implements Kind.
func (PodDisruptionBudget) Resource() string { return "poddisruptionbudgets" }

// Properties implements Kind.
func (PodDisruptionBudget) Properties() Properties {
	return Properties{OptIn: true, Held: true, HasStatus: true, Sent: "the spec you wrote", NotSent: "the label in the selector on the hub"}
}

// Hold implements Kind. A budget without a selector selects nothing.
func (PodDisruptionBudget) Hold(object, _ *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	if selector, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "selector"); selector == nil {
		return nil, nil
	}
	return fields.Set(object, v1alpha1.ScheduleRemote, budgetLabelPath...), nil
}

// Release implements Kind.
func (PodDisruptionBudget) Release(object *unstructured.Unstructured) fields.Patch {
	return fields.Remove(object, budgetLabelPath...)
}

// Held implements Kind.
func (PodDisruptionBudget) Held(object *unstructured.Unstructured) bool {
	selector, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "selector")
	return selector == nil || fields.String(object, budgetLabelPath...) == v1alpha1.ScheduleRemote
}

func (PodDisruptionBudget) removeHubFields(template *unstructured.Unstructured, _ Intent) {
	unstructured.RemoveNestedField(template.Object, budgetLabelPath...)
	dropEmpty(template, "spec", "selector", "matchLabels")
}

func (PodDisruptionBudget) reportsObservedGeneration() bool { return true }

// Reflect implements Kind. disruptedPods names Pods of the target, for which the hub's
// controller would look.
func (PodDisruptionBudget) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := targetStatus(native, seen)
	delete(status, "disruptedPods")
	requireCounts(status, "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
	setConditions(status, seen, "lastTransitionTime")
	return status
}
