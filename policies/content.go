package policies

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// What is in a Secret or ConfigMap that travels under its own name is not in its
// resource. Portico reads it on the hub, with its own rights, for whoever can
// write the resource. So the resource has to be the one that Portico made, for
// that very object, and can ask for nothing else.

// ContentOwner returns the native Secret or ConfigMap that controls a resource,
// and whose content the resource therefore stands for; nil for any other.
func ContentOwner(resource metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(resource)
	if owner == nil || !kinds.HasContent(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)) {
		return nil
	}
	return owner
}

// DependencyIndex finds resources by the Secrets and ConfigMaps that they need, or
// stand for, as DependencyKey names them.
const DependencyIndex = "spec.dependencies"

// DependencyKey names a Secret or ConfigMap in DependencyIndex.
func DependencyKey(kind, name string) string { return kind + "/" + name }

// problemsOfContent are what keeps a resource from standing for its owner's
// content, as far as it shows by itself.
func problemsOfContent(resource *v1alpha1.KubernetesApplicationResource, template *unstructured.Unstructured) field.ErrorList {
	owner := ContentOwner(resource)
	if owner == nil || template == nil {
		return nil
	}
	var errs field.ErrorList
	if name := kinds.ResourceName(owner.Kind, owner.Name); resource.Name != name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), resource.Name, fmt.Sprintf(
			"is controlled by %s %s, whose resource is named %s", owner.Kind, owner.Name, name)))
	}
	path := field.NewPath("spec", "template")
	if template.GetAPIVersion() != owner.APIVersion || template.GetKind() != owner.Kind || template.GetName() != owner.Name || template.GetNamespace() != resource.Namespace {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("has to be %s %s in namespace %s, which controls the resource",
			owner.Kind, owner.Name, resource.Namespace)))
	}
	for _, name := range kinds.Content(template) {
		errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf(
			"is read from %s %s when it is sent; leave it out, because more people may read a resource", owner.Kind, owner.Name)))
	}
	return errs
}

// Withholds says why nothing of a native Secret or ConfigMap, of which metadata
// is enough, is sent for a resource that it is said to control; empty when it is.
// native is nil when there is none of that name.
func Withholds(resource *v1alpha1.KubernetesApplicationResource, native metav1.Object) string {
	owner := ContentOwner(resource)
	switch {
	case owner == nil:
		return "no Secret or ConfigMap controls the resource"
	case native == nil:
		return fmt.Sprintf("%s %s does not exist in namespace %s", owner.Kind, owner.Name, resource.Namespace)
	case native.GetName() != owner.Name, native.GetNamespace() != resource.Namespace, native.GetUID() != owner.UID:
		return fmt.Sprintf("%s %s is another one than the resource was made for", owner.Kind, owner.Name)
	case native.GetLabels()[v1alpha1.ScheduleLabel] != v1alpha1.ScheduleRemote:
		return fmt.Sprintf("%s %s has no label %s=%s", owner.Kind, owner.Name, v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote)
	}
	return ""
}

// KeepsNative says why a Secret or ConfigMap never leaves the hub; empty when it
// may.
func KeepsNative(object *unstructured.Unstructured) string {
	switch gvk := object.GroupVersionKind(); {
	case !kinds.HasContent(gvk):
	case gvk.Kind == kinds.SecretKind:
		kind, _, _ := unstructured.NestedString(object.Object, "type")
		return KeepsSecret(corev1.SecretType(kind))
	case object.GetName() == kinds.RootCA:
		return "holds the hub's certificate authority, of which every cluster has its own, and is never sent"
	}
	return ""
}

// KeepsConnection says why a Secret is not sent that opens targets: who may run
// something on one may not take the key. Empty when it opens none.
func KeepsConnection(name string, targets []v1alpha1.KubernetesTarget) string {
	var opens []string
	for i := range targets {
		if ref := targets[i].Spec.ConnectionSecretRef; ref != nil && ref.Name == name {
			opens = append(opens, targets[i].Name)
		}
	}
	if len(opens) == 0 {
		return ""
	}
	return "connects to target " + strings.Join(opens, ", ") + ", and is never sent"
}
