package propagation

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// holder is the resource that an object on a target is marked as having.
type holder struct {
	hub string // "" for one that the first implementation marked
	types.NamespacedName
}

// holderOf reads the marks; nil for an object that has none, or not all.
func holderOf(observed metav1.Object) *holder {
	annotations := observed.GetAnnotations()
	out := holder{hub: observed.GetLabels()[v1alpha1.ManagedByLabel], NamespacedName: types.NamespacedName{
		Namespace: annotations[v1alpha1.ResourceNamespaceAnnotation], Name: annotations[v1alpha1.ResourceNameAnnotation],
	}}
	if out.hub == "" {
		out.NamespacedName = types.NamespacedName{Namespace: annotations[v1alpha1.LegacyNamespaceAnnotation], Name: annotations[v1alpha1.LegacyNameAnnotation]}
	}
	if out.Name == "" || out.Namespace == "" {
		return nil
	}
	return &out
}

// belongs tells whether an object on a target is this resource's. What it had is
// its own also without the marks, which somebody took off.
func belongs(observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource, hubID string) bool {
	if holderOf(observed) == nil {
		return resource.Status.RemoteUID != "" && resource.Status.RemoteUID == observed.GetUID()
	}
	return isMarkedAs(observed, types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}, hubID)
}

// isMarkedAs tells whether an object is marked as a resource's. The UID of the
// resource is not compared: a hub restored from a backup owns what it owned before.
// The first implementation did not say whose hub it was.
func isMarkedAs(observed metav1.Object, resource types.NamespacedName, hubID string) bool {
	held := holderOf(observed)
	return held != nil && (held.hub == hubID || held.hub == "") && held.NamespacedName == resource
}

// takes tells whether a resource takes over an object that is not its own. What
// was taken from it is not taken back, so that two that both insist do not fight:
// the last that was told to has it.
func takes(observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) bool {
	if resource.DeletionTimestamp != nil || observed.GetDeletionTimestamp() != nil || metav1.GetControllerOf(observed) != nil {
		return false
	}
	switch policies.AdoptionOf(resource) {
	case v1alpha1.AdoptIfUnowned:
		return holderOf(observed) == nil
	case v1alpha1.AdoptForce:
		return resource.Status.RemoteUID != observed.GetUID()
	}
	return false
}

// takesCopy tells the same of what has the name of a copy. Copies are taken from
// nobody who has them, and not if they would have to be made anew.
func takesCopy(desired, observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) bool {
	return policies.AdoptionOf(resource) != v1alpha1.AdoptNever && holderOf(observed) == nil && observed.Object["type"] == desired.Object["type"] &&
		observed.GetDeletionTimestamp() == nil && metav1.GetControllerOf(observed) == nil
}

// owner names whose an object is, for a person.
func owner(observed *unstructured.Unstructured, hubID string) string {
	controller, held := metav1.GetControllerOf(observed), holderOf(observed)
	switch {
	case held == nil && controller != nil:
		return fmt.Sprintf("%s %s on the target", controller.Kind, controller.Name)
	case held == nil:
		return "nobody Portico knows"
	case held.hub == "":
		return fmt.Sprintf("KubernetesApplicationResource %s of Portico's predecessor", held)
	case held.hub != hubID:
		return fmt.Sprintf("KubernetesApplicationResource %s of another hub (%s)", held, held.hub)
	default:
		return fmt.Sprintf("KubernetesApplicationResource %s", held)
	}
}

// wayIn says how an object that is not ours could become so.
func wayIn(observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) string {
	key := v1alpha1.AdoptAnnotation
	switch held := holderOf(observed); {
	case observed.GetDeletionTimestamp() != nil:
		return "it is being deleted there"
	case metav1.GetControllerOf(observed) != nil:
		return "what a controller there owns cannot be adopted"
	case policies.AdoptionOf(resource) == v1alpha1.AdoptForce: // and it was taken from us
		return fmt.Sprintf("it was taken over from here; to take it back, remove the annotation %s and set it again", key)
	case held == nil:
		return fmt.Sprintf("to adopt it, set the annotation %s=%s", key, v1alpha1.AdoptIfUnowned)
	default:
		return fmt.Sprintf("to take it over all the same, set the annotation %s=%s", key, v1alpha1.AdoptForce)
	}
}

// adopted notes that the object is the resource's, and tells of one that was not.
func (j *journey) adopted(before *unstructured.Unstructured, hubID string) {
	j.resource.Status.RemoteUID = j.observed.GetUID()
	switch {
	case j.standing == taken:
		j.story = append(j.story, narrate.Event{Reason: v1alpha1.EventAdopted, Note: fmt.Sprintf(
			"%s %s existed on target %s, belonged to %s, and was adopted", j.desired.GetKind(), j.desired.GetName(), j.target.Name, owner(before, hubID))})
	case j.standing == drifted && before.GetLabels()[v1alpha1.ManagedByLabel] == "" && holderOf(before) != nil:
		j.story = append(j.story, narrate.Event{Reason: v1alpha1.EventAdopted, Note: fmt.Sprintf(
			"%s %s on target %s was made by Portico's predecessor, and was adopted", j.desired.GetKind(), j.desired.GetName(), j.target.Name)})
	}
}

// disowned notes that the object is not the resource's. Who insists on having it,
// and had it, is remembered, so as not to take it again.
func (j *journey) disowned() {
	if policies.AdoptionOf(j.resource) != v1alpha1.AdoptForce {
		j.resource.Status.RemoteUID = ""
	}
}
