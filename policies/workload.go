package policies

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// The CRDs hold the rules that a schema can express, such as types and immutable
// fields. The functions here hold the others, such as unique names and the namespace
// of a template.

// ValidateApplication validates a KubernetesApplication. It ignores errors that the
// stored object has already. old is nil on create.
func ValidateApplication(app, old *v1alpha2.KubernetesApplication) field.ErrorList {
	errs := validateApplicationSpec(app)
	if old != nil {
		errs = RatchetErrors(errs, validateApplicationSpec(old))
		errs = append(errs, validateTemplateIdentity(app, old)...)
	}
	return errs
}

func validateApplicationSpec(app *v1alpha2.KubernetesApplication) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateSelector(app.Spec.TargetSelector, spec.Child("targetSelector"))
	errs = append(errs, validateSelector(app.Spec.ResourceSelector, spec.Child("resourceSelector"))...)
	errs = append(errs, validateTolerations(app.Spec.Tolerations, spec.Child("tolerations"))...)
	errs = append(errs, validateReleaseAnnotation(app)...)
	for _, problems := range ValidateTemplates(app) {
		errs = append(errs, problems...)
	}
	return errs
}

// ValidateResource validates a KubernetesApplicationResource. It ignores errors that
// the stored object has already. old is nil on create.
func ValidateResource(resource, old *v1alpha1.KubernetesApplicationResource) field.ErrorList {
	spec := field.NewPath("spec")
	template, errs := validateResourceSpec(resource)
	if old == nil {
		return errs
	}
	before, known := validateResourceSpec(old)
	errs = RatchetErrors(errs, known)
	if template == nil {
		return errs
	}
	if before != nil && before.GetNamespace() != template.GetNamespace() {
		errs = append(errs, field.Forbidden(spec.Child("template", "metadata", "namespace"), fmt.Sprintf(
			"cannot change from %q, because the object on the target would be orphaned; delete and re-create the KubernetesApplicationResource",
			before.GetNamespace())))
	}
	return errs
}

// validateResourceSpec also returns the template, which is nil when it cannot be read.
func validateResourceSpec(resource *v1alpha1.KubernetesApplicationResource) (*unstructured.Unstructured, field.ErrorList) {
	spec := field.NewPath("spec")
	errs := validateSelector(resource.Spec.TargetSelector, spec.Child("targetSelector"))
	_, malformed := TolerationsOf(resource, &metav1.ObjectMeta{})
	errs = append(errs, malformed...)
	errs = append(errs, ValidateReadiness(resource.Spec.Readiness, spec.Child("readiness"))...)
	errs = append(errs, validateOwnershipAnnotations(resource.Annotations, annotationsPath)...)
	errs = append(errs, validateReleaseAnnotation(resource)...)
	_, malformed = DriftPolicyOf(resource, &metav1.ObjectMeta{})
	errs = append(errs, malformed...)
	template, malformed := decodeTemplate(resource.Spec.Template, spec.Child("template"))
	errs = append(errs, malformed...)
	errs = append(errs, validateSharedDependencies(resource, template)...)
	return template, append(errs, validateContentOwner(resource, template)...)
}

// ValidateTarget validates a KubernetesTarget. It ignores errors that the stored
// object has already. old is nil on create.
func ValidateTarget(target, old *v1alpha1.KubernetesTarget) field.ErrorList {
	errs := validateTargetSpec(target)
	if old != nil {
		errs = RatchetErrors(errs, validateTargetSpec(old))
	}
	return errs
}

func validateTargetSpec(target *v1alpha1.KubernetesTarget) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateTaints(target.Spec.Taints, spec.Child("taints"))
	errs = append(errs, validateAllowance(target.Spec.Allow, spec.Child("allow"))...)
	errs = append(errs, validateImpersonation(target.Spec.Impersonate, spec.Child("impersonate"))...)
	return append(errs, validateConnection(target)...)
}

func validateConnection(target *v1alpha1.KubernetesTarget) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	switch secret := target.Spec.ConnectionSecretRef; {
	case secret != nil && secret.Name == "":
		errs = append(errs, field.Required(spec.Child("connectionSecretRef", "name"), "name a Secret"))
	case secret == nil && target.Spec.ClusterRef == nil:
		errs = append(errs, field.Required(spec.Child("connectionSecretRef", "name"),
			"name the Secret in this namespace that holds the cluster's kubeconfig, or its endpoint and credentials; or name a managed cluster in spec.clusterRef"))
	}
	if target.Spec.Connection == v1alpha1.ConnectionPrivate && target.Spec.ClusterRef == nil && ConnectionSecret(target).Namespace == target.Namespace {
		errs = append(errs, field.Forbidden(spec.Child("connection"),
			"applies to the copy of a managed cluster's connection, and users of this namespace may read a Secret in it; name the cluster in spec.clusterRef, or a Secret of another namespace in spec.connectionSecretRef.namespace"))
	}
	if ref := target.Spec.ClusterRef; ref != nil {
		if version, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || version.Group == "" || version.Version == "" {
			errs = append(errs, field.Invalid(spec.Child("clusterRef", "apiVersion"), ref.APIVersion,
				"must be the group and version of a managed cluster's kind, such as compute.gcp.crossplane.io/v1alpha3"))
		}
	}
	return errs
}

// TemplateObject decodes a template. It returns nil for an invalid one.
func TemplateObject(raw runtime.RawExtension) *unstructured.Unstructured {
	object, malformed := decodeTemplate(raw, nil)
	if len(malformed) > 0 {
		return nil
	}
	return object
}

// decodeTemplate decodes a template, and validates the metadata of its object.
func decodeTemplate(raw runtime.RawExtension, path *field.Path) (*unstructured.Unstructured, field.ErrorList) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw.Raw, &object.Object); err != nil || object.Object == nil {
		return nil, field.ErrorList{field.Required(path, "give the object to run on the target")}
	}
	var errs field.ErrorList
	if object.GetAPIVersion() == "" {
		errs = append(errs, field.Required(path.Child("apiVersion"), "the object's API version, such as apps/v1"))
	}
	if object.GetKind() == "" {
		errs = append(errs, field.Required(path.Child("kind"), "the object's kind, such as Deployment"))
	}
	if object.GetName() == "" {
		errs = append(errs, field.Required(path.Child("metadata", "name"), "an object on a target needs a name of its own; generateName is not supported"))
	}
	for _, hubs := range []string{"uid", "resourceVersion", "managedFields", "ownerReferences", "finalizers"} {
		if _, set, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", hubs); set {
			errs = append(errs, field.Forbidden(path.Child("metadata", hubs), "belongs to the object's own cluster; leave it out"))
		}
	}
	if _, set := object.Object["status"]; set {
		errs = append(errs, field.Forbidden(path.Child("status"), "is written by the target; leave it out"))
	}
	return object, errs
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)
}
