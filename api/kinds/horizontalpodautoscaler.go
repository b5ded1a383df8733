package kinds

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
)

// HorizontalPodAutoscaler is not changed. A ValidatingAdmissionPolicy denies that the
// hub's controller scales what a remote autoscaler names. Portico writes the replicas of
// the target to the hub.
type HorizontalPodAutoscaler struct{}

var _ Kind = HorizontalPodAutoscaler{}

// GroupVersionKind implements Kind.
func (HorizontalPodAutoscaler) GroupVersionKind() schema.GroupVersionKind {
	return autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
}

// Resource implements Kind.
func (HorizontalPodAutoscaler) Resource() string { return "horizontalpodautoscalers" }

// Properties implements Kind.
func (HorizontalPodAutoscaler) Properties() Properties {
	return Properties{OptIn: true, HasStatus: true, Sent: "the spec you wrote", NotSent: "an autoscaler of an object that is not sent itself"}
}

// Hold implements Kind.
func (HorizontalPodAutoscaler) Hold(_, _ *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	return nil, nil
}

// Release implements Kind.
func (HorizontalPodAutoscaler) Release(*unstructured.Unstructured) fields.Patch { return nil }

// Held implements Kind.
func (HorizontalPodAutoscaler) Held(object *unstructured.Unstructured) bool { return IsRemote(object) }

func (HorizontalPodAutoscaler) removeHubFields(*unstructured.Unstructured, Intent) {}

// reportsObservedGeneration implements Kind. The objects have no generation.
func (HorizontalPodAutoscaler) reportsObservedGeneration() bool { return false }

// Reflect implements Kind.
func (HorizontalPodAutoscaler) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := targetStatus(native, seen)
	requireCounts(status, "desiredReplicas")
	if _, found := status["currentMetrics"]; !found {
		status["currentMetrics"] = nil // as the API server stores no metrics
	}
	setConditions(status, seen, "lastTransitionTime")
	return status
}

// ScaleTarget is the object that an autoscaler scales, in its own namespace.
type ScaleTarget struct {
	schema.GroupVersionKind
	Name string
}

// ScaleTargetOf returns the object that an autoscaler scales, and false for an object of
// another kind.
func ScaleTargetOf(object *unstructured.Unstructured) (ScaleTarget, bool) {
	if object.GroupVersionKind() != (HorizontalPodAutoscaler{}).GroupVersionKind() {
		return ScaleTarget{}, false
	}
	field := func(name string) string { return fields.String(object, "spec", "scaleTargetRef", name) }
	return ScaleTarget{GroupVersionKind: schema.FromAPIVersionAndKind(field("apiVersion"), field("kind")), Name: field("name")}, true
}

// Is tells whether an object is the scale target. The versions may differ.
func (t ScaleTarget) Is(object *unstructured.Unstructured) bool {
	return t.GroupKind() == object.GroupVersionKind().GroupKind() && t.Name == object.GetName()
}

// Scalable returns the kind of the object, and false for a kind that is not sent, or that
// has no replicas.
func (t ScaleTarget) Scalable() (Kind, bool) {
	for _, kind := range All {
		if kind.GroupVersionKind().GroupKind() == t.GroupKind() {
			return kind, kind.Properties().HasScale
		}
	}
	return nil, false
}

// AutoscaledReplicas returns the replicas that an autoscaler has set on the target, by its
// status there; false if it has set none.
func AutoscaledReplicas(status map[string]any) (int64, bool) {
	_, scaled, _ := unstructured.NestedString(status, "lastScaleTime")
	replicas, _, _ := unstructured.NestedInt64(status, "desiredReplicas")
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, condition := range fields.Items(conditions) {
		if condition["type"] == string(autoscalingv2.AbleToScale) && condition["status"] != string(corev1.ConditionTrue) {
			return 0, false
		}
	}
	return replicas, scaled && replicas > 0
}
