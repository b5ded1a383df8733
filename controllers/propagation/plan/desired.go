// Package plan decides what propagation does: the desired object, its state on the
// target, ownership, conflicts of fields, drift, and the copies of Secrets and
// ConfigMaps. It has no client.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Desired returns the object to apply for a resource: its template, with the marks of its
// owner, and with a digest.
func Desired(resource *v1alpha1.KubernetesApplicationResource, hubID string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(resource.Spec.Template.Raw); err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	for _, field := range []string{"creationTimestamp", "resourceVersion", "uid", "managedFields", "generation", "ownerReferences", "finalizers"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	delete(object.Object, "status")

	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	// A Portico on the target must not send the object on. Such a target may be this hub.
	delete(labels, v1alpha1.ScheduleLabel)
	unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "labels", v1alpha1.ScheduleLabel)
	labels[v1alpha1.ManagedByLabel] = hubID
	labels[v1alpha1.HubNamespaceLabel] = resource.Namespace
	object.SetLabels(labels)

	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.ResourceUIDAnnotation] = string(resource.UID)
	annotations[v1alpha1.ResourceNamespaceAnnotation] = resource.Namespace
	annotations[v1alpha1.ResourceNameAnnotation] = resource.Name
	object.SetAnnotations(annotations)
	return object, SetDigest(object)
}

// SetDigest sets the annotation with the digest of an object. HubNamespaceLabel is not
// part of the digest, because earlier versions of Portico applied objects without it.
func SetDigest(object *unstructured.Unstructured) error {
	annotations, all := object.GetAnnotations(), object.GetLabels()
	delete(annotations, v1alpha1.AppliedAnnotation)
	object.SetAnnotations(annotations)
	unstructured.RemoveNestedField(object.Object, "metadata", "labels", v1alpha1.HubNamespaceLabel)
	data, err := json.Marshal(object.Object) // map keys are sorted
	object.SetLabels(all)
	if err != nil {
		return fmt.Errorf("encoding the template: %w", err)
	}
	digest := sha256.Sum256(data)
	annotations[v1alpha1.AppliedAnnotation] = hex.EncodeToString(digest[:8])
	object.SetAnnotations(annotations)
	return nil
}

// DigestOf returns the digest that SetDigest set, or "".
func DigestOf(object *unstructured.Unstructured) string {
	return object.GetAnnotations()[v1alpha1.AppliedAnnotation]
}

// OwnerMarks are the annotations that Portico sets on objects on targets.
var OwnerMarks = []string{
	v1alpha1.ResourceUIDAnnotation, v1alpha1.ResourceNamespaceAnnotation, v1alpha1.ResourceNameAnnotation,
	v1alpha1.HubGenerationAnnotation, v1alpha1.AppliedAnnotation, v1alpha1.CopyAnnotation, v1alpha1.ContentAnnotation,
	v1alpha1.LegacyUIDAnnotation, v1alpha1.LegacyNamespaceAnnotation, v1alpha1.LegacyNameAnnotation,
}

// NamespaceObject returns the Namespace of an object.
func NamespaceObject(object *unstructured.Unstructured) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(object.GetNamespace())
	return namespace
}

// ObservedDigest identifies an observed object that differs at some paths from the
// desired one. It is "" without a difference. It does not reveal the object.
func ObservedDigest(object *unstructured.Unstructured, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	content := maps.Clone(object.Object)
	delete(content, "metadata")
	delete(content, "status")
	data, err := json.Marshal([]any{paths, content, object.GetLabels(), object.GetAnnotations()})
	if err != nil {
		return "" // which equals nothing that was settled
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
