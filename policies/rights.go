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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// Portico reads Secrets and lends clusters for people, so whoever points it at
// something must have the right to that thing. As with RBAC's own verbs bind and
// escalate, the API server is asked about the person, at the moment of the
// change. Portico's own changes only carry out what was asked for before.

// Right is what a change takes for granted of the person who makes it.
type Right struct {
	// Path is the field that needs the right.
	Path *field.Path
	// Why the field needs it; empty when the right alone says so.
	Why string
	// Verb, Kind and Subresource say what must be allowed. Whether the kind has
	// namespaces, the hub knows.
	Verb        string
	Kind        schema.GroupVersionKind
	Subresource string
	// Namespace of what is used, should its kind have namespaces, and its Name.
	Namespace string
	Name      string
}

var (
	secretKind      = corev1.SchemeGroupVersion.WithKind("Secret")
	resourceKind    = v1alpha1.GroupVersion.WithKind("KubernetesApplicationResource")
	applicationKind = v1alpha2.GroupVersion.WithKind("KubernetesApplication")
)

// RightsForTarget returns what storing a KubernetesTarget takes. old is nil on
// create.
func RightsForTarget(target, old *v1alpha1.KubernetesTarget) []Right {
	var before v1alpha1.KubernetesTargetSpec
	if old != nil {
		before = old.Spec
	}
	now := target.Spec
	// What bounds the use of a connection is as good as the connection.
	rebound := !equality.Semantic.DeepEqual(now.Allow, before.Allow) || !equality.Semantic.DeepEqual(now.Impersonate, before.Impersonate)

	spec := field.NewPath("spec")
	var rights []Right
	if ref := now.ConnectionSecretRef; ref != nil && ref.Name != "" && (rebound || !equality.Semantic.DeepEqual(ref, before.ConnectionSecretRef)) {
		rights = append(rights, readSecret(spec.Child("connectionSecretRef", "name"), target.Namespace, ref.Name))
	}
	if ref := now.ClusterRef; ref != nil && (rebound || !equality.Semantic.DeepEqual(ref, before.ClusterRef)) {
		rights = append(rights, Right{
			Path: spec.Child("clusterRef"), Verb: v1alpha1.PublishVerb,
			Kind:      schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind),
			Namespace: target.Namespace, Name: ref.Name,
		})
	}
	return rights
}

// RightsForResource returns what storing a KubernetesApplicationResource takes.
// old is nil on create.
func RightsForResource(resource, old *v1alpha1.KubernetesApplicationResource) []Right {
	var before []corev1.LocalObjectReference
	var was metav1.Object
	if old != nil {
		before, was = old.Spec.Secrets, old
	}
	rights := marks(resource, was, resourceKind)
	for i, ref := range resource.Spec.Secrets {
		if !slices.Contains(before, ref) && ref.Name != "" {
			rights = append(rights, readSecret(field.NewPath("spec", "secrets").Index(i).Child("name"), resource.Namespace, ref.Name))
		}
	}
	for i, need := range resource.Spec.Dependencies {
		if old != nil && slices.ContainsFunc(old.Spec.Dependencies, func(d v1alpha1.Dependency) bool {
			return d.Kind == need.Kind && d.Name == need.Name && d.Native == need.Native
		}) {
			continue
		}
		rights = append(rights, Right{
			Path: field.NewPath("spec", "dependencies").Index(i).Child("name"), Verb: "get",
			Kind: corev1.SchemeGroupVersion.WithKind(need.Kind), Namespace: resource.Namespace, Name: need.Name,
		})
	}
	return distinct(rights)
}

// RightsForApplication returns what storing a KubernetesApplication takes. old
// is nil on create.
func RightsForApplication(app, old *v1alpha2.KubernetesApplication) []Right {
	var before []corev1.LocalObjectReference
	var was metav1.Object
	if old != nil {
		was = old
		for _, template := range old.Spec.ResourceTemplates {
			before = append(before, template.Spec.Secrets...)
		}
	}
	rights := marks(app, was, applicationKind)
	for i, template := range app.Spec.ResourceTemplates {
		for j, ref := range template.Spec.Secrets {
			if !slices.Contains(before, ref) && ref.Name != "" {
				path := field.NewPath("spec", "resourceTemplates").Index(i).Child("spec", "secrets").Index(j).Child("name")
				rights = append(rights, readSecret(path, app.Namespace, ref.Name))
			}
		}
	}
	return distinct(rights)
}

func readSecret(path *field.Path, namespace, name string) Right {
	return Right{Path: path, Verb: "get", Kind: secretKind, Namespace: namespace, Name: name}
}

// marks are what Portico's own records carry, and what it acts on: the label
// that says it made them, and the native object whose status they become.
// Whoever may write the records' status may forge them, and restore a backup.
func marks(object, old metav1.Object, kind schema.GroupVersionKind) []Right {
	right := Right{Verb: "update", Kind: kind, Subresource: "status", Namespace: object.GetNamespace(), Name: object.GetName(),
		Why: "is Portico's own mark; leave it out"}
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
	right.Why = fmt.Sprintf("only Portico speaks for %s %s; leave the controller out", owner.Kind, owner.Name)
	return []Right{right}
}

func isNative(owner metav1.OwnerReference) bool {
	gk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	return slices.ContainsFunc(kinds.All, func(k kinds.Kind) bool { return k.GroupVersionKind().GroupKind() == gk })
}

// distinct drops what is asked for twice.
func distinct(rights []Right) []Right {
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

// Attributes asks an authorizer about a right. resource is the kind's name in
// the API.
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

// Lacking is the refusal for want of a right, with the RBAC rule that gives it.
func (r Right) Lacking(user authenticationv1.UserInfo, asked *authorizationv1.ResourceAttributes) *field.Error {
	resource := asked.Resource
	if asked.Subresource != "" {
		resource += "/" + asked.Subresource
	}
	role, where := "ClusterRole", ""
	if asked.Namespace != "" {
		role, where = "Role", " in namespace "+asked.Namespace
	}
	names := ""
	if asked.Name != "" {
		names = fmt.Sprintf(", resourceNames: [%s]", asked.Name)
	}
	text := fmt.Sprintf("user %q may not %s %s %q%s; a %s%s with this rule would allow it: {apiGroups: [%q], resources: [%s]%s, verbs: [%s]}",
		user.Username, asked.Verb, schema.GroupResource{Group: asked.Group, Resource: resource}, asked.Name, where,
		role, where, asked.Group, resource, names, asked.Verb)
	if r.Why != "" {
		text = r.Why + ": " + text
	}
	return field.Forbidden(r.Path, strings.TrimSpace(text))
}

// Unknown is the refusal of a kind that the hub does not have.
func (r Right) Unknown() *field.Error {
	return field.Invalid(r.Path.Child("kind"), r.Kind.Kind, fmt.Sprintf(
		"the hub has no kind %s of %s, so nobody can be allowed to use it; install its CustomResourceDefinition first, or name a Secret in connectionSecretRef",
		r.Kind.Kind, r.Kind.GroupVersion()))
}
