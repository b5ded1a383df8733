package policies

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// The indexes of the hub's cache. With them no step lists a whole namespace.
const (
	// ApplicationIndex finds resources by their application.
	ApplicationIndex = "metadata.labels.application"
	// TargetIndex finds resources by the targets of TargetsOf.
	TargetIndex = "spec.targetRef.name"
	// UnscheduledIndex finds the applications, and the resources without an
	// application, that the scheduler has to place or to move. Its only key is
	// Unscheduled.
	UnscheduledIndex = "unscheduled"
	// Unscheduled is the key of UnscheduledIndex.
	Unscheduled = "true"
	// PrerequisiteIndex finds resources that create a Namespace or a
	// CustomResourceDefinition on a target. See PrerequisiteKey.
	PrerequisiteIndex = "spec.template.prerequisite"
	// ScaleTargetIndex finds the resources of autoscalers by the object that they scale.
	// See ScaleTargetKeys.
	ScaleTargetIndex = "spec.template.scaleTarget"
)

// ApplicationKeys returns the keys of a resource in ApplicationIndex.
func ApplicationKeys(resource metav1.Object) []string {
	if name, member := resource.GetLabels()[v1alpha1.ApplicationLabel]; member {
		return []string{name}
	}
	return nil
}

// PrerequisiteKey returns the key in PrerequisiteIndex of an object that other objects
// on a target need: a Namespace, a CustomResourceDefinition or a ServiceAccount. It
// returns "" for other kinds.
func PrerequisiteKey(object *unstructured.Unstructured) string {
	switch kind := object.GroupVersionKind().GroupKind(); {
	case kind.Group == "" && kind.Kind == "Namespace":
		return NamespaceKey(object.GetName())
	case kind.Group == definitionGroup && kind.Kind == definitionKind:
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		name, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		return DefinitionKey(group, name)
	case kind.Group == "" && kind.Kind == "ServiceAccount":
		return ServiceAccountKey(object.GetName())
	}
	return ""
}

const (
	definitionGroup = "apiextensions.k8s.io"
	definitionKind  = "CustomResourceDefinition"
)

// NamespaceKey returns the key of a namespace in PrerequisiteIndex.
func NamespaceKey(name string) string { return "namespace/" + name }

// DefinitionKey returns the key of a CustomResourceDefinition in PrerequisiteIndex.
func DefinitionKey(group, kind string) string { return "definition/" + group + "/" + kind }

// ServiceAccountKey returns the key of a ServiceAccount in PrerequisiteIndex.
func ServiceAccountKey(name string) string { return "serviceaccount/" + name }

// PrerequisiteKeys returns the keys of a resource in PrerequisiteIndex. It decodes a
// template only if its text names one of the three kinds, because the cache calls it
// for every version of every resource.
func PrerequisiteKeys(resource *v1alpha1.KubernetesApplicationResource) []string {
	raw := resource.Spec.Template.Raw
	if !bytes.Contains(raw, []byte(`"Namespace"`)) && !bytes.Contains(raw, []byte(`"ServiceAccount"`)) && !bytes.Contains(raw, []byte(`"`+definitionKind+`"`)) {
		return nil
	}
	object := &unstructured.Unstructured{}
	if json.Unmarshal(raw, &object.Object) != nil || object.Object == nil {
		return nil
	}
	if key := PrerequisiteKey(object); key != "" {
		return []string{key}
	}
	return nil
}
