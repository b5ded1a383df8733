package policies

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Released tells whether a target may go although resources are on it.
func Released(target metav1.Object) bool {
	return target.GetAnnotations()[v1alpha1.ReleaseAnnotation] == "true"
}

// OnTarget are the resources that are on a target, or may be.
func OnTarget(target string, resources []v1alpha1.KubernetesApplicationResource) []v1alpha1.KubernetesApplicationResource {
	var out []v1alpha1.KubernetesApplicationResource
	for _, resource := range resources {
		if slices.Contains(TargetsOf(&resource), target) {
			out = append(out, resource)
		}
	}
	return out
}

// KeepTarget says why a target must not be deleted, or "".
func KeepTarget(target string, on []v1alpha1.KubernetesApplicationResource) string {
	if len(on) == 0 {
		return ""
	}
	return fmt.Sprintf("%s on target %s, which would be out of reach; %s", count(on), target, waysOut(target))
}

// KeepSecret says why the connection Secret of a target must not be deleted, or
// "".
func KeepSecret(secret, target string, on []v1alpha1.KubernetesApplicationResource) string {
	if len(on) == 0 {
		return ""
	}
	return fmt.Sprintf("%s on target %s, which is reached with Secret %s; %s", count(on), target, secret, waysOut(target))
}

func waysOut(target string) string {
	return fmt.Sprintf("move them away (kubectl portico drain %s), delete them, or give them up (kubectl annotate kubernetestarget %s %s=true)",
		target, target, v1alpha1.ReleaseAnnotation)
}

func count(on []v1alpha1.KubernetesApplicationResource) string {
	if len(on) == 1 {
		return "1 KubernetesApplicationResource is"
	}
	return fmt.Sprintf("%d KubernetesApplicationResources are", len(on))
}

// LeftBehind lists what a release leaves on a target: the first few of many.
func LeftBehind(on []v1alpha1.KubernetesApplicationResource) string {
	const few = 10
	var parts []string
	for i := range on {
		parts = append(parts, Remote(&on[i]))
	}
	slices.Sort(parts)
	if len(parts) > few {
		parts = append(parts[:few], fmt.Sprintf("and %d more", len(parts)-few))
	}
	return strings.Join(parts, ", ")
}

// StillLeft are those of the objects that stayed on a target that are none of the
// resources' that are on it now.
func StillLeft(left []v1alpha1.LeftObject, on []v1alpha1.KubernetesApplicationResource) []v1alpha1.LeftObject {
	var out []v1alpha1.LeftObject
	for _, object := range left {
		if !slices.ContainsFunc(on, func(resource v1alpha1.KubernetesApplicationResource) bool {
			return resource.DeletionTimestamp == nil && Remote(&resource) == object.Object
		}) {
			out = append(out, object)
		}
	}
	return out
}

// Remote names the object that a resource has on its target.
func Remote(resource *v1alpha1.KubernetesApplicationResource) string {
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

// TargetsOf are the targets that a resource is on, or may be: its own, and the one it is
// leaving.
func TargetsOf(resource *v1alpha1.KubernetesApplicationResource) []string {
	var out []string
	for _, ref := range []*v1alpha1.TargetReference{resource.Spec.TargetRef, resource.Spec.LeavingTargetRef} {
		if ref != nil {
			out = append(out, ref.Name)
		}
	}
	return out
}
