package policies

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// The annotation with-rbac sends the Roles of a ServiceAccount to the target, where they
// grant rights. It sends the Roles that exist, and those that are bound later. So it takes
// the right to grant every Role of the namespace on the hub: the verbs escalate and bind.
// For a namespace a ValidatingAdmissionPolicy asks for the same.

// SubjectIndex finds RoleBindings by the ServiceAccounts of their namespace that they
// name.
const SubjectIndex = "subjects.serviceaccount"

var withRBACPath = annotationsPath.Key(v1alpha1.WithRBACAnnotation)

// WithRBAC tells whether the Roles of an object's ServiceAccount are sent.
func WithRBAC(object, namespace metav1.Object) bool {
	value, _ := firstValue(v1alpha1.WithRBACAnnotation, object.GetAnnotations(), namespace.GetAnnotations())
	return value == "true"
}

// validateWithRBAC returns an error for a value without a meaning.
func validateWithRBAC(object metav1.Object) field.ErrorList {
	text, set := object.GetAnnotations()[v1alpha1.WithRBACAnnotation]
	if !set {
		return nil
	}
	return validateOneOf(withRBACPath, text, []string{"true", "false"})
}

// NeedsRBAC tells whether one of the resources asks for the Roles of a ServiceAccount.
func NeedsRBAC(resources []v1alpha1.KubernetesApplicationResource, account string) bool {
	return slices.ContainsFunc(resources, func(resource v1alpha1.KubernetesApplicationResource) bool {
		return slices.ContainsFunc(resource.Spec.Dependencies, func(d v1alpha1.Dependency) bool {
			return d.Kind == kinds.ServiceAccountKind && d.Name == account && d.RBAC
		})
	})
}

// RightsForNative returns the rights that a user needs to write a native object. old is
// nil on create. Portico has no such rights, so it cannot opt in an object for another.
func RightsForNative(object, old *unstructured.Unstructured, namespace metav1.Object) []Right {
	none := &metav1.ObjectMeta{}
	account := kinds.ServiceAccount(object)
	if !kinds.IsRemote(object) || !WithRBAC(object, none) || WithRBAC(none, namespace) {
		return nil
	}
	if kinds.IsRemote(old) && WithRBAC(old, none) && kinds.ServiceAccount(old) == account {
		return nil
	}
	return rightsToGrantRoles(withRBACPath, namespace.GetName(), fmt.Sprintf("sends the Roles of ServiceAccount %s to a target", account))
}

// rightsToGrantRoles are the rights to grant every Role of a namespace.
func rightsToGrantRoles(path *field.Path, namespace, reason string) []Right {
	var out []Right
	for _, verb := range []string{"escalate", "bind"} {
		out = append(out, Right{Path: path, Reason: reason, Verb: verb, Kind: kinds.DependencyKind(kinds.RoleKind), Namespace: namespace})
	}
	return out
}
