package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// markedOwner is the resource that the marks of an object name.
type markedOwner struct {
	hub string // "" if the first implementation marked the object
	types.NamespacedName
}

// markedOwnerOf reads the marks of an object. It returns nil if marks are missing.
func markedOwnerOf(observed metav1.Object) *markedOwner {
	annotations := observed.GetAnnotations()
	out := markedOwner{hub: observed.GetLabels()[v1alpha1.ManagedByLabel], NamespacedName: types.NamespacedName{
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

// IsOwned tells whether a resource owns an object on a target. It also owns an object
// whose marks were removed.
func IsOwned(observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource, hubID string) bool {
	if markedOwnerOf(observed) == nil {
		return resource.Status.RemoteUID != "" && resource.Status.RemoteUID == observed.GetUID()
	}
	return IsMarkedAs(observed, types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}, hubID)
}

// IsMarkedAs tells whether the marks of an object name a resource. The UID of the resource
// is not compared, so that a hub that was restored from a backup owns the same objects as
// before. The marks of the first implementation do not name the hub.
func IsMarkedAs(observed metav1.Object, resource types.NamespacedName, hubID string) bool {
	held := markedOwnerOf(observed)
	return held != nil && (held.hub == hubID || held.hub == "") && held.NamespacedName == resource
}

// SiblingOf returns the name of the resource that owns an object, if that resource is,
// or was, made of the same native object as the given one: "" for any other owner.
func SiblingOf(observed *unstructured.Unstructured, resource metav1.Object, hubID string) string {
	held, native := markedOwnerOf(observed), metav1.GetControllerOf(resource)
	if held == nil || native == nil || held.hub != hubID || held.Namespace != resource.GetNamespace() || held.Name == resource.GetName() ||
		native.Kind != observed.GetKind() || native.Name != observed.GetName() || !kinds.IsNameOfDependency(held.Name, native.Kind, native.Name) {
		return ""
	}
	return held.Name
}

// adopts tells whether a resource adopts an object that it does not own. An object that
// it owned before is not adopted again: of two resources with the adoption policy
// Force, the one that adopted the object last owns it.
func adopts(observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) bool {
	if resource.DeletionTimestamp != nil || observed.GetDeletionTimestamp() != nil || metav1.GetControllerOf(observed) != nil {
		return false
	}
	switch policies.AdoptionPolicyOf(resource) {
	case v1alpha1.AdoptIfUnowned:
		return markedOwnerOf(observed) == nil
	case v1alpha1.AdoptForce:
		return resource.Status.RemoteUID != observed.GetUID()
	}
	return false
}

// AdoptsCopy does the same for an object with the name of a copy. An object that
// another resource owns is not adopted, and neither is a Secret of another type.
func AdoptsCopy(desired, observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) bool {
	return policies.AdoptionPolicyOf(resource) != v1alpha1.AdoptNever && markedOwnerOf(observed) == nil && observed.Object["type"] == desired.Object["type"] &&
		observed.GetDeletionTimestamp() == nil && metav1.GetControllerOf(observed) == nil
}

// OwnerName names the owner of an object in a message.
func OwnerName(observed *unstructured.Unstructured, hubID string) string {
	controller, held := metav1.GetControllerOf(observed), markedOwnerOf(observed)
	switch {
	case held == nil && controller != nil:
		return fmt.Sprintf("%s %s on the target", controller.Kind, controller.Name)
	case held == nil:
		return "an unknown owner"
	case held.hub == "":
		return fmt.Sprintf("KubernetesApplicationResource %s of Portico's predecessor", held)
	case held.hub != hubID:
		return fmt.Sprintf("KubernetesApplicationResource %s of another hub (%s)", held, held.hub)
	default:
		return fmt.Sprintf("KubernetesApplicationResource %s", held)
	}
}

// adoptionHint explains how the resource can adopt an object.
func adoptionHint(observed *unstructured.Unstructured, resource *v1alpha1.KubernetesApplicationResource) string {
	key := v1alpha1.AdoptAnnotation
	switch held := markedOwnerOf(observed); {
	case observed.GetDeletionTimestamp() != nil:
		return "it is being deleted there"
	case metav1.GetControllerOf(observed) != nil:
		return "an object that a controller there owns cannot be adopted"
	case policies.AdoptionPolicyOf(resource) == v1alpha1.AdoptForce: // and another resource has taken the object
		return fmt.Sprintf("another resource has taken it over; to take it back, remove the annotation %s and set it again", key)
	case held == nil:
		return fmt.Sprintf("to adopt it, set the annotation %s=%s", key, v1alpha1.AdoptIfUnowned)
	default:
		return fmt.Sprintf("to take it over, set the annotation %s=%s", key, v1alpha1.AdoptForce)
	}
}

// MadeByPredecessor tells whether the first implementation of Portico created an
// object: its marks do not name a hub.
func MadeByPredecessor(observed metav1.Object) bool {
	owner := markedOwnerOf(observed)
	return owner != nil && owner.hub == ""
}

// NotOwnedMessage names the owner of a Foreign object or NativeObject, and a way out.
func NotOwnedMessage(target string, desired, observed *unstructured.Unstructured, at State, resource *v1alpha1.KubernetesApplicationResource, hubID string) string {
	if at == NativeObject {
		return fmt.Sprintf("%s %s would replace itself on target %s, because that target is this hub; it was not changed: "+
			"choose another target, or use a KubernetesApplicationResource whose template names another namespace",
			desired.GetKind(), desired.GetName(), target)
	}
	return ForeignObjectMessage(target, desired.GetKind(), desired.GetName(), observed, hubID) + ": " + adoptionHint(observed, resource)
}

// ForeignObjectMessage names the owner of an object.
func ForeignObjectMessage(target, kind, name string, observed *unstructured.Unstructured, hubID string) string {
	return fmt.Sprintf("%s %s exists on target %s and belongs to %s; it was not changed", kind, name, target, OwnerName(observed, hubID))
}

// Unmark removes Portico's labels, annotations and field ownership from an object, which
// has to be live: caches hold no managed fields.
func Unmark(live *unstructured.Unstructured) {
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	delete(labels, v1alpha1.ManagedByLabel)
	delete(labels, v1alpha1.HubNamespaceLabel)
	for _, mark := range OwnerMarks {
		delete(annotations, mark)
	}
	live.SetLabels(labels)
	live.SetAnnotations(annotations)
	managers := slices.DeleteFunc(live.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == v1alpha1.PropagationManager
	})
	if len(managers) == 0 {
		managers = []metav1.ManagedFieldsEntry{{}} // the API server takes an empty entry as "none"
	}
	live.SetManagedFields(managers)
}

// IsAppliedFor tells whether this hub applies an object for a resource of a namespace.
func IsAppliedFor(observed metav1.Object, namespace, hubID string) bool {
	held := markedOwnerOf(observed)
	return held != nil && held.hub == hubID && held.Namespace == namespace
}

// IsSent tells whether this hub applies an object for a resource that Portico made of the
// same object in a namespace.
func IsSent(observed *unstructured.Unstructured, namespace, hubID string) bool {
	held := markedOwnerOf(observed)
	return IsAppliedFor(observed, namespace, hubID) && kinds.IsNameOfDependency(held.Name, observed.GetKind(), observed.GetName())
}
