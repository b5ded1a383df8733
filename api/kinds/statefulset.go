package kinds

import (
	"encoding/json"
	"hash/fnv"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
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
func (s StatefulSet) Hold(object, old *unstructured.Unstructured, by Author) (fields.Patch, error) {
	return holdWorkload(s, object, old, by)
}

// Release implements Kind.
func (s StatefulSet) Release(object *unstructured.Unstructured) fields.Patch {
	return releaseWorkload(s, object)
}

// setHold implements Workload. On an update, a claim template has the label if the stored
// one has it.
func (s StatefulSet) setHold(object, old *unstructured.Unstructured) fields.Patch {
	patch := s.podTemplate.setHold(object, old)
	stored := claimTemplates(old)
	for i := range claimTemplates(object) {
		if old == nil || i < len(stored) && fields.String(stored[i], claimLabelPath...) == v1alpha1.ScheduleRemote {
			patch = append(patch, fields.SetInList(object, v1alpha1.ScheduleRemote, claimTemplatesPath, i, claimLabelPath...)...)
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
// names of ControllerRevisions on the hub. Until the hub's controller has made that of a
// rollout, updateRevision is the target's: it has to differ from currentRevision.
func (StatefulSet) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	status := reflectReplicas(native, seen)
	requireCounts(status, "replicas", "availableReplicas")
	keepOwn(status, native, "collisionCount")
	current, update := status["currentRevision"], status["updateRevision"]
	delete(status, "currentRevision")
	delete(status, "updateRevision")
	keepOwn(status, native, "currentRevision")
	keepOwn(status, native, "updateRevision")
	if seen.Status != nil && seen.HubGeneration >= native.GetGeneration() {
		setRevisions(status, seen.HubRevision, update, current == update)
	}
	setConditions(status, seen, "lastTransitionTime")
	return status
}

// setRevisions sets the revisions of a status. hubRevision is "" if the hub has none of the
// Pod template, and update is that of the target.
func setRevisions(status map[string]any, hubRevision string, update any, rolledOut bool) {
	current, hasCurrent := status["currentRevision"]
	switch {
	case hubRevision != "":
		status["updateRevision"] = hubRevision
		if rolledOut || !hasCurrent {
			status["currentRevision"] = hubRevision
		}
	case !rolledOut:
		status["updateRevision"] = update
	case hasCurrent:
		status["updateRevision"] = current
	}
}

// RevisionOf returns the name of the ControllerRevision of a StatefulSet's Pod template,
// or "" if the hub's controller has not made it. The newest revision may be that of
// another template, because caches are not of one time.
func RevisionOf(native *unstructured.Unstructured, revisions []unstructured.Unstructured) string {
	template, _, _ := unstructured.NestedMap(native.Object, "spec", "template")
	want := templateHash(template)
	var name string
	highest := int64(-1)
	for i := range revisions {
		if n, _, _ := unstructured.NestedInt64(revisions[i].Object, "revision"); n > highest && revisionHash(&revisions[i]) == want {
			highest, name = n, revisions[i].GetName()
		}
	}
	return name
}

// StripRevision replaces the Pod template in a ControllerRevision by its hash, which
// RevisionOf reads, too.
func StripRevision(revision *unstructured.Unstructured) {
	revision.Object["data"] = revisionHash(revision)
}

// revisionHash returns the hash of the Pod template in a ControllerRevision.
func revisionHash(revision *unstructured.Unstructured) string {
	if hash, ok := revision.Object["data"].(string); ok {
		return hash
	}
	template, _, _ := unstructured.NestedMap(revision.Object, "data", "spec", "template")
	delete(template, "$patch")
	return templateHash(template)
}

// templateHash returns the hash of a copy of a Pod template. Older API servers write the
// field creationTimestamp, which is null.
func templateHash(template map[string]any) string {
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	data, err := json.Marshal(template) // sorts keys
	if err != nil {
		return ""
	}
	hash := fnv.New64a()
	hash.Write(data)
	return strconv.FormatUint(hash.Sum64(), 16)
}
