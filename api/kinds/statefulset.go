package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// StatefulSet is held by the label in its Pod template and in its claim templates.
// ValidatingAdmissionPolicies deny Pods and claims with that label on the hub. The hub's
// controller tries the claims before the Pod, and tries again after up to 1,000 seconds.
// Claim templates are immutable, so they get the label on create only.
type StatefulSet struct{ podTemplate }

var (
	_ Workload  = StatefulSet{}
	_ immovable = StatefulSet{}
)

var (
	claimTemplatesPath = []string{"spec", "volumeClaimTemplates"}
	claimLabelPath     = []string{"metadata", "labels", v1alpha1.ScheduleLabel}
)

// GroupVersionKind implements Kind.
func (StatefulSet) GroupVersionKind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("StatefulSet")
}

// Resource implements Kind.
func (StatefulSet) Resource() string { return "statefulsets" }

// Properties implements Kind.
func (StatefulSet) Properties() Properties {
	return Properties{
		OptIn: true, Held: true, HasStatus: true, HasScale: true, DeniesPods: true,
		Sent:    "the spec you wrote",
		NotSent: "`replicas`, when an autoscaler on the target sets them",
	}
}

// Hold implements Kind.
func (s StatefulSet) Hold(object, old *unstructured.Unstructured, by Author) (Patch, error) {
	return holdWorkload(s, object, old, by)
}

// Release implements Kind.
func (s StatefulSet) Release(object *unstructured.Unstructured) Patch {
	return releaseWorkload(s, object)
}

// setHold implements Workload. On an update, a claim template has the label if the stored
// one has it.
func (s StatefulSet) setHold(object, old *unstructured.Unstructured) Patch {
	patch := s.podTemplate.setHold(object, old)
	stored := claimTemplates(old)
	for i := range claimTemplates(object) {
		if old == nil || i < len(stored) && nestedString(stored[i], claimLabelPath...) == v1alpha1.ScheduleRemote {
			patch = append(patch, setInList(object, v1alpha1.ScheduleRemote, claimTemplatesPath, i, claimLabelPath...)...)
		}
	}
	return patch
}

func (s StatefulSet) removeHubFields(template *unstructured.Unstructured, intent Intent) {
	for _, claim := range claimTemplates(template) {
		unstructured.RemoveNestedField(claim.Object, claimLabelPath...)
		dropEmpty(claim, "metadata", "labels")
		unstructured.RemoveNestedField(claim.Object, "metadata", "creationTimestamp")
	}
	s.podTemplate.removeHubFields(template, intent)
}

// claimTemplates returns the claim templates of a StatefulSet, not copies.
func claimTemplates(object *unstructured.Unstructured) []*unstructured.Unstructured {
	if object == nil {
		return nil
	}
	list, _, _ := unstructured.NestedFieldNoCopy(object.Object, claimTemplatesPath...)
	claims, _ := list.([]any)
	out := make([]*unstructured.Unstructured, 0, len(claims))
	for _, claim := range claims {
		fields, ok := claim.(map[string]any)
		if !ok {
			return nil // the API server refuses it
		}
		out = append(out, &unstructured.Unstructured{Object: fields})
	}
	return out
}

// immovableReason implements immovable.
func (StatefulSet) immovableReason(object *unstructured.Unstructured) (reason, remedy string) {
	if len(claimTemplates(object)) == 0 {
		return "", ""
	}
	return "a StatefulSet with volumeClaimTemplates cannot move between clusters, because its data does not move",
		"delete and re-create the StatefulSet"
}

// Reflect implements Kind. collisionCount is the hub controller's own. The revisions are
// names of ControllerRevisions on the hub.
func (StatefulSet) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := reflectReplicas(native, seen)
	requireCounts(status, "replicas", "availableReplicas")
	keepOwn(status, native, "collisionCount")
	rolledOut := status["currentRevision"] == status["updateRevision"]
	delete(status, "currentRevision")
	delete(status, "updateRevision")
	keepOwn(status, native, "currentRevision")
	keepOwn(status, native, "updateRevision")
	if seen.Status != nil && seen.HubRevision != "" && seen.HubGeneration >= native.GetGeneration() {
		status["updateRevision"] = seen.HubRevision
		if rolledOut || status["currentRevision"] == nil {
			status["currentRevision"] = seen.HubRevision
		}
	}
	setConditions(status, seen, "lastTransitionTime")
	return status
}

// NewestControllerRevision returns the name of the ControllerRevision with the highest
// revision, or "".
func NewestControllerRevision(revisions []unstructured.Unstructured) string {
	var name string
	highest := int64(-1)
	for i := range revisions {
		if n, _, _ := unstructured.NestedInt64(revisions[i].Object, "revision"); n > highest {
			highest, name = n, revisions[i].GetName()
		}
	}
	return name
}
