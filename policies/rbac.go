package policies

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// The annotation with-rbac sends the Roles of a ServiceAccount to the target, where they
// grant rights. It sends the Roles that exist, and those that are bound later. So it takes
// the right to grant every Role of the namespace on the hub: the verbs escalate and bind.
// A ValidatingAdmissionPolicy requires the same rights for the annotation on a namespace,
// and for an annotation that is set in a write of the status.

// SubjectIndex finds RoleBindings by the ServiceAccounts of their namespace that they
// name.
const SubjectIndex = "subjects.serviceaccount"

var withRBACPath = annotationsPath.Key(v1alpha1.WithRBACAnnotation)

// WithRBAC tells whether the Roles of an object's ServiceAccount are sent.
func WithRBAC(object, namespace metav1.Object) bool {
	value, _ := firstValue(v1alpha1.WithRBACAnnotation, object.GetAnnotations(), namespace.GetAnnotations())
	return value == "true"
}

// DecidesAboutRBAC tells whether a user decided that the Roles of an object's ServiceAccount
// are sent, or that they are not.
func DecidesAboutRBAC(object, namespace metav1.Object) bool {
	_, decided := firstValue(v1alpha1.WithRBACAnnotation, object.GetAnnotations(), namespace.GetAnnotations())
	return decided
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
// nil on create. An annotation of the namespace makes no difference: without it the one of
// the object has an effect again. Portico has no such rights, so it cannot opt in an object
// for another user.
func RightsForNative(object, old *unstructured.Unstructured, namespace string) []Right {
	none := &metav1.ObjectMeta{}
	sends := func(object *unstructured.Unstructured) bool {
		return kinds.IsRemote(object) && WithRBAC(object, none)
	}
	account := references.ServiceAccount(object)
	if !sends(object) || account == "" || account == kinds.DefaultServiceAccount || sends(old) && references.ServiceAccount(old) == account {
		return nil
	}
	return rightsToGrantRoles(withRBACPath, namespace, fmt.Sprintf("sends the Roles of ServiceAccount %s to a target", account))
}

// rightsForTemplate returns the rights to send the object of a template. old is the
// template before, or nil. A Role or RoleBinding grants rights on the target, so it takes
// the right to grant every Role of the namespace on the hub. A NetworkPolicy, ResourceQuota
// or LimitRange restricts others in the namespace, so it takes the right to write the kind on
// the hub.
func rightsForTemplate(path *field.Path, template, old runtime.RawExtension, namespace string) []Right {
	object := TemplateObject(template)
	if object == nil || fields.EqualJSON(template.Raw, old.Raw) {
		return nil
	}
	kind := object.GroupVersionKind()
	reason := fmt.Sprintf("sends %s %s to a target", kind.Kind, object.GetName())
	if kind.Group == rbacv1.GroupName && (kind.Kind == kinds.RoleKind || kind.Kind == kinds.RoleBindingKind) {
		return rightsToGrantRoles(path, namespace, reason)
	}
	for _, k := range kinds.All {
		if k.GroupVersionKind().GroupKind() == kind.GroupKind() && k.Properties().EnforcedOnHub != "" {
			return []Right{
				{Path: path, Reason: reason, Verb: "create", Kind: k.GroupVersionKind(), Namespace: namespace},
				{Path: path, Reason: reason, Verb: "update", Kind: k.GroupVersionKind(), Namespace: namespace},
			}
		}
	}
	return nil
}

// rightsToGrantRoles are the rights to grant every Role of a namespace.
func rightsToGrantRoles(path *field.Path, namespace, reason string) []Right {
	var out []Right
	for _, verb := range []string{"escalate", "bind"} {
		out = append(out, Right{Path: path, Reason: reason, Verb: verb, Kind: kinds.DependencyKind(kinds.RoleKind), Namespace: namespace})
	}
	return out
}
