package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// The resource of a native Secret or ConfigMap does not hold its content. Portico
// reads the content on the hub with its own rights. So that the author of a resource
// cannot read content through it, Portico sends content only for a resource that it made
// for that very object: because the object has the label, or as a shared dependency.

// ContentOwner returns the native Secret or ConfigMap that controls a resource, and
// whose content is sent for it; nil for any other resource.
func ContentOwner(resource metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(resource)
	if owner == nil || !kinds.HasContent(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)) {
		return nil
	}
	return owner
}

// validateContentOwner validates the template of a resource that a Secret or
// ConfigMap controls.
func validateContentOwner(resource *v1alpha1.KubernetesApplicationResource, template *unstructured.Unstructured) field.ErrorList {
	owner := ContentOwner(resource)
	if owner == nil || template == nil {
		return nil
	}
	var errs field.ErrorList
	name := kinds.ResourceName(owner.Kind, owner.Name)
	if ref := resource.Spec.TargetRef; ref != nil && IsSharedDependency(resource) {
		name = kinds.DependencyName(owner.Kind, owner.Name, ref.Name)
	}
	if resource.Name != name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), resource.Name, fmt.Sprintf(
			"is controlled by %s %s, whose resource is named %s", owner.Kind, owner.Name, name)))
	}
	path := field.NewPath("spec", "template")
	if template.GetAPIVersion() != owner.APIVersion || template.GetKind() != owner.Kind || template.GetName() != owner.Name || template.GetNamespace() != resource.Namespace {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("has to be %s %s in namespace %s, which controls the resource",
			owner.Kind, owner.Name, resource.Namespace)))
	}
	for _, name := range kinds.ContentFields(template) {
		errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf(
			"is read from %s %s when the object is sent; leave it out, because more users may read a resource", owner.Kind, owner.Name)))
	}
	return errs
}

// ContentDeniedReason returns why the content of a native Secret or ConfigMap is not
// sent for a resource; "" when it is sent. native needs only metadata, and is nil
// when the object does not exist.
func ContentDeniedReason(resource *v1alpha1.KubernetesApplicationResource, native metav1.Object) string {
	owner := ContentOwner(resource)
	switch {
	case owner == nil:
		return "no Secret or ConfigMap controls the resource"
	case native == nil:
		return fmt.Sprintf("%s %s does not exist in namespace %s", owner.Kind, owner.Name, resource.Namespace)
	case native.GetName() != owner.Name, native.GetNamespace() != resource.Namespace, native.GetUID() != owner.UID:
		return fmt.Sprintf("%s %s is not the one that the resource was made for", owner.Kind, owner.Name)
	case !kinds.HasRemoteLabel(native) && !IsSharedDependency(resource):
		return fmt.Sprintf("%s %s has no label %s=%s", owner.Kind, owner.Name, v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote)
	}
	return ""
}

// HubOnlyReason returns why a Secret or ConfigMap is never sent; "" when it may be.
func HubOnlyReason(object *unstructured.Unstructured) string {
	switch gvk := object.GroupVersionKind(); {
	case !kinds.HasContent(gvk):
	case gvk.Kind == references.SecretKind:
		kind, _, _ := unstructured.NestedString(object.Object, "type")
		return HubOnlySecretReason(corev1.SecretType(kind))
	case object.GetName() == references.RootCA:
		return "holds the hub's certificate authority, of which every cluster has its own, and is never sent"
	}
	return ""
}

// HubOnlySecretReason returns why Secrets of a type are never sent; "" when they may
// be. Credentials for the hub are of no use to a workload on a target.
func HubOnlySecretReason(kind corev1.SecretType) string {
	switch kind {
	case corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken:
		return "is a credential for the hub, of type " + string(kind) + ", and is never sent"
	}
	return ""
}
