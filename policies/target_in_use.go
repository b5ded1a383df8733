package policies

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// HasReleaseAnnotation tells whether a target may be deleted although resources are
// on it.
func HasReleaseAnnotation(target metav1.Object) bool {
	return target.GetAnnotations()[v1alpha1.ReleaseAnnotation] == "true"
}

// ResourcesOnTarget returns the resources that are, or may be, on a target.
func ResourcesOnTarget(target string, resources []v1alpha1.KubernetesApplicationResource) []v1alpha1.KubernetesApplicationResource {
	var out []v1alpha1.KubernetesApplicationResource
	for _, resource := range resources {
		if slices.Contains(TargetsOf(&resource), target) {
			out = append(out, resource)
		}
	}
	return out
}

// TargetInUseMessage returns why a target must not be deleted; "" when it may be.
func TargetInUseMessage(target string, on []v1alpha1.KubernetesApplicationResource) string {
	if len(on) == 0 {
		return ""
	}
	return fmt.Sprintf("%s on target %s, and Portico could no longer manage their objects; %s", countResources(on), target, releaseHint(target))
}

// SecretInUseMessage returns why the connection Secret of a target must not be
// deleted; "" when it may be. Target and Secret may be in two namespaces.
func SecretInUseMessage(secret types.NamespacedName, target *v1alpha1.KubernetesTarget, on []v1alpha1.KubernetesApplicationResource) string {
	if len(on) == 0 {
		return ""
	}
	where := ""
	if target.Namespace != secret.Namespace {
		where = " of namespace " + target.Namespace
	}
	return fmt.Sprintf("%s on target %s%s, whose connection is in Secret %s; %s", countResources(on), target.Name, where, secret.Name, releaseHint(target.Name))
}

func releaseHint(target string) string {
	return fmt.Sprintf("move them away (kubectl portico drain %s), delete them, or release them (kubectl annotate kubernetestarget %s %s=true)",
		target, target, v1alpha1.ReleaseAnnotation)
}

func countResources(on []v1alpha1.KubernetesApplicationResource) string {
	if len(on) == 1 {
		return "1 KubernetesApplicationResource is"
	}
	return fmt.Sprintf("%d KubernetesApplicationResources are", len(on))
}

// FormatRemoteObjects lists the objects that resources have on a target: the first
// ten of many.
func FormatRemoteObjects(on []v1alpha1.KubernetesApplicationResource) string {
	const maxListed = 10
	var parts []string
	for i := range on {
		parts = append(parts, RemoteObjectName(&on[i]))
	}
	slices.Sort(parts)
	if len(parts) > maxListed {
		parts = append(parts[:maxListed], fmt.Sprintf("and %d more", len(parts)-maxListed))
	}
	return strings.Join(parts, ", ")
}

// OrphanedObjects returns the objects left on a target that no resource on the target
// manages now.
func OrphanedObjects(left []v1alpha1.OrphanedObject, on []v1alpha1.KubernetesApplicationResource) []v1alpha1.OrphanedObject {
	var out []v1alpha1.OrphanedObject
	for _, object := range left {
		if !slices.ContainsFunc(on, func(resource v1alpha1.KubernetesApplicationResource) bool {
			return resource.DeletionTimestamp == nil && RemoteObjectName(&resource) == object.Object
		}) {
			out = append(out, object)
		}
	}
	return out
}

// RemoteObjectName names the object of a resource on its target.
func RemoteObjectName(resource *v1alpha1.KubernetesApplicationResource) string {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(resource.Spec.Template.Raw, &object.Object); err != nil || object.Object == nil {
		return "the object of " + resource.Name
	}
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetKind() + " " + name
}

// TargetsOf returns the targets that a resource is, or may be, on: its own, and the
// one that it moves away from.
func TargetsOf(resource *v1alpha1.KubernetesApplicationResource) []string {
	var out []string
	for _, ref := range []*v1alpha1.TargetReference{resource.Spec.TargetRef, resource.Spec.LeavingTargetRef} {
		if ref != nil {
			out = append(out, ref.Name)
		}
	}
	return out
}
