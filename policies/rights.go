package policies

import (
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// Portico reads Secrets and connects to clusters with its own rights. So a user who
// names a Secret or a cluster in an object needs the right to it. As for RBAC's verbs
// bind and escalate, the API server checks the user's right at the time of the change.
// Portico's own changes need no right.

// Right is a permission that a user needs for a change.
type Right struct {
	// Path is the field whose change needs the right.
	Path *field.Path
	// Reason the field needs it; empty when the right alone says so.
	Reason string
	// Verb, Kind and Subresource are the permission.
	Verb        string
	Kind        schema.GroupVersionKind
	Subresource string
	// Namespace and Name are those of the object. Namespace is ignored for a
	// cluster-scoped kind.
	Namespace string
	Name      string
}

var (
	secretKind      = corev1.SchemeGroupVersion.WithKind("Secret")
	resourceKind    = v1alpha1.GroupVersion.WithKind("KubernetesApplicationResource")
	applicationKind = v1alpha2.GroupVersion.WithKind("KubernetesApplication")
)

// RightsForTarget returns the rights that a user needs to write a KubernetesTarget.
// old is nil on create.
func RightsForTarget(target, old *v1alpha1.KubernetesTarget) []Right {
	var before v1alpha1.KubernetesTargetSpec
	if old != nil {
		before = old.Spec
	}
	now := target.Spec
	// A change of the limits of a connection needs the same rights as the connection,
	// and so does the removal of the claim that has to control its Secret.
	rebound := !equality.Semantic.DeepEqual(now.Allow, before.Allow) || !equality.Semantic.DeepEqual(now.Impersonate, before.Impersonate) || leavesClaim(target, old)

	spec := field.NewPath("spec")
	var rights []Right
	if secret := ConnectionSecret(target); secret.Name != "" && (rebound || !equality.Semantic.DeepEqual(now.ConnectionSecretRef, before.ConnectionSecretRef)) {
		rights = append(rights, readSecret(spec.Child("connectionSecretRef", "name"), secret.Namespace, secret.Name))
	}
	// spec.connection decides who may read the copy of the connection.
	if ref := now.ClusterRef; ref != nil && (rebound || now.Connection != before.Connection || !equality.Semantic.DeepEqual(ref, before.ClusterRef)) {
		rights = append(rights, Right{
			Path: spec.Child("clusterRef"), Verb: v1alpha1.PublishVerb,
			Kind:      schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind),
			Namespace: target.Namespace, Name: ref.Name,
		})
	}
	return rights
}

// ConnectionChanged tells whether the Secret or the impersonated user of a
// KubernetesTarget changed.
func ConnectionChanged(target, old *v1alpha1.KubernetesTarget) bool {
	return !equality.Semantic.DeepEqual(target.Spec.ConnectionSecretRef, old.Spec.ConnectionSecretRef) ||
		!equality.Semantic.DeepEqual(target.Spec.Impersonate, old.Spec.Impersonate)
}

// leavesClaim tells whether a claim controlled the stored target, and does not
// control the new one.
func leavesClaim(target, old *v1alpha1.KubernetesTarget) bool {
	if old == nil {
		return false
	}
	was, is := ClaimOf(old), ClaimOf(target)
	return was != nil && (is == nil || is.UID != was.UID)
}

// RightsForResource returns the rights that a user needs to write a
// KubernetesApplicationResource. old is nil on create.
func RightsForResource(resource, old *v1alpha1.KubernetesApplicationResource) []Right {
	var before []corev1.LocalObjectReference
	var was metav1.Object
	if old != nil {
		before, was = old.Spec.Secrets, old
	}
	var template runtime.RawExtension
	if old != nil {
		template = old.Spec.Template
	}
	rights := rightsForPorticoMetadata(resource, was, resourceKind)
	rights = append(rights, rightsForTemplate(field.NewPath("spec", "template"), resource.Spec.Template, template, resource.Namespace)...)
	for i, ref := range resource.Spec.Secrets {
		if !slices.Contains(before, ref) && ref.Name != "" {
			rights = append(rights, readSecret(field.NewPath("spec", "secrets").Index(i).Child("name"), resource.Namespace, ref.Name))
		}
	}
	for i, need := range resource.Spec.Dependencies {
		if old != nil && slices.ContainsFunc(old.Spec.Dependencies, func(d v1alpha1.Dependency) bool {
			return d == need
		}) {
			continue
		}
		if need.RBAC || need.Kind == kinds.RoleKind || need.Kind == kinds.RoleBindingKind {
			rights = append(rights, rightsToGrantRoles(field.NewPath("spec", "dependencies").Index(i), resource.Namespace, "sends Roles to a target")...)
		}
		rights = append(rights, Right{
			Path: field.NewPath("spec", "dependencies").Index(i).Child("name"), Verb: "get",
			Kind: kinds.DependencyKind(need.Kind), Namespace: resource.Namespace, Name: need.Name,
		})
	}
	return uniqueRights(rights)
}

// RightsForApplication returns the rights that a user needs to write a
// KubernetesApplication. old is nil on create.
func RightsForApplication(app, old *v1alpha2.KubernetesApplication) []Right {
	var before []corev1.LocalObjectReference
	var was metav1.Object
	templates := map[string]runtime.RawExtension{}
	if old != nil {
		was = old
		for _, template := range old.Spec.ResourceTemplates {
			before = append(before, template.Spec.Secrets...)
			templates[template.Metadata.Name] = template.Spec.Template
		}
	}
	rights := rightsForPorticoMetadata(app, was, applicationKind)
	for i, template := range app.Spec.ResourceTemplates {
		path := field.NewPath("spec", "resourceTemplates").Index(i).Child("spec", "template")
		rights = append(rights, rightsForTemplate(path, template.Spec.Template, templates[template.Metadata.Name], app.Namespace)...)
		for j, ref := range template.Spec.Secrets {
			if !slices.Contains(before, ref) && ref.Name != "" {
				path := field.NewPath("spec", "resourceTemplates").Index(i).Child("spec", "secrets").Index(j).Child("name")
				rights = append(rights, readSecret(path, app.Namespace, ref.Name))
			}
		}
	}
	return uniqueRights(rights)
}

func readSecret(path *field.Path, namespace, name string) Right {
	return Right{Path: path, Verb: "get", Kind: secretKind, Namespace: namespace, Name: name}
}

// rightsForPorticoMetadata returns the right that a user needs to set metadata on
// which Portico acts: the label of objects that Portico made, and a native object as
// controller, whose status the resource determines. A user who may update the status
// of resources may set both, for instance to restore a backup.
func rightsForPorticoMetadata(object, old metav1.Object, kind schema.GroupVersionKind) []Right {
	right := Right{Verb: "update", Kind: kind, Subresource: "status", Namespace: object.GetNamespace(), Name: object.GetName(),
		Reason: "is set by Portico only; leave it out"}
	_, marked := object.GetLabels()[v1alpha1.FrontDoorLabel]
	if marked && (old == nil || old.GetLabels()[v1alpha1.FrontDoorLabel] != object.GetLabels()[v1alpha1.FrontDoorLabel]) {
		right.Path = field.NewPath("metadata", "labels").Key(v1alpha1.FrontDoorLabel)
		return []Right{right}
	}
	owner := metav1.GetControllerOf(object)
	if owner == nil || !isNative(*owner) {
		return nil
	}
	if old != nil {
		if before := metav1.GetControllerOf(old); before != nil && before.UID == owner.UID && before.Kind == owner.Kind && before.Name == owner.Name {
			return nil
		}
	}
	right.Path = field.NewPath("metadata", "ownerReferences")
	right.Reason = fmt.Sprintf("only Portico makes the resource of %s %s; leave the controller out", owner.Kind, owner.Name)
	return []Right{right}
}

func isNative(owner metav1.OwnerReference) bool {
	gk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	return isShareable(gk) || kinds.IsRegistered(gk)
}

// uniqueRights returns each right once.
func uniqueRights(rights []Right) []Right {
	var out []Right
	for _, r := range rights {
		if !slices.ContainsFunc(out, func(o Right) bool {
			return o.Verb == r.Verb && o.Kind == r.Kind && o.Subresource == r.Subresource && o.Namespace == r.Namespace && o.Name == r.Name
		}) {
			out = append(out, r)
		}
	}
	return out
}

// Attributes returns the attributes for an access review. resource is the resource
// name of the kind.
func (r Right) Attributes(resource string, namespaced bool) *authorizationv1.ResourceAttributes {
	namespace := ""
	if namespaced {
		namespace = r.Namespace
	}
	return &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: r.Verb, Name: r.Name,
		Group: r.Kind.Group, Version: r.Kind.Version, Resource: resource, Subresource: r.Subresource,
	}
}

// ForbiddenError is the error for a user who lacks the right, with the RBAC rule that
// grants it.
func (r Right) ForbiddenError(user authenticationv1.UserInfo, attributes *authorizationv1.ResourceAttributes) *field.Error {
	resource := attributes.Resource
	if attributes.Subresource != "" {
		resource += "/" + attributes.Subresource
	}
	role, where := "ClusterRole", ""
	if attributes.Namespace != "" {
		role, where = "Role", " in namespace "+attributes.Namespace
	}
	names := ""
	if attributes.Name != "" {
		names = fmt.Sprintf(", resourceNames: [%s]", attributes.Name)
	}
	text := fmt.Sprintf("user %q may not %s %s %q%s; a %s%s with this rule would allow it: {apiGroups: [%q], resources: [%s]%s, verbs: [%s]}",
		user.Username, attributes.Verb, schema.GroupResource{Group: attributes.Group, Resource: resource}, attributes.Name, where,
		role, where, attributes.Group, resource, names, attributes.Verb)
	if r.Reason != "" {
		text = r.Reason + ": " + text
	}
	return field.Forbidden(r.Path, strings.TrimSpace(text))
}

// UnknownKindError is the error for a kind that the hub does not have.
func (r Right) UnknownKindError() *field.Error {
	return field.Invalid(r.Path.Child("kind"), r.Kind.Kind, fmt.Sprintf(
		"the hub has no kind %s of %s, so no user can have a right to it; install its CustomResourceDefinition first, or name a Secret in connectionSecretRef",
		r.Kind.Kind, r.Kind.GroupVersion()))
}
