package policies

import (
	"cmp"
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// reservedLabels are the labels that only Portico sets on the resources of an
// application.
var reservedLabels = []string{v1alpha1.ApplicationLabel, v1alpha1.FrontDoorLabel}

// ValidateTemplates returns the errors of each resource template of an application,
// in order. Templates without errors are used although others have errors.
func ValidateTemplates(app *v1alpha2.KubernetesApplication) []field.ErrorList {
	out := make([]field.ErrorList, len(app.Spec.ResourceTemplates))
	names := map[string]bool{}
	remotes := map[string]string{}
	for i, template := range app.Spec.ResourceTemplates {
		path := templatePath(i)
		name := template.Metadata.Name
		errs := validateTemplateMeta(template.Metadata, path.Child("metadata"))
		// The application's name is the value of the label of its members.
		for _, problem := range validation.IsValidLabelValue(app.Name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), app.Name,
				"becomes a label of the application's resources: "+problem))
		}
		if names[name] {
			errs = append(errs, field.Duplicate(path.Child("metadata", "name"), name))
		}
		names[name] = true

		remote, malformed := decodeTemplate(template.Spec.Template, path.Child("spec", "template"))
		errs = append(errs, malformed...)
		errs = append(errs, ValidateReadiness(template.Spec.Readiness, path.Child("spec", "readiness"))...)
		if remote != nil {
			key := remoteObjectKey(remote)
			if other, taken := remotes[key]; taken {
				errs = append(errs, field.Invalid(path.Child("spec", "template"), key,
					fmt.Sprintf("is templated by %q already; two templates would overwrite each other", other)))
			} else {
				remotes[key] = name
			}
		}
		out[i] = errs
	}
	return out
}

func templatePath(i int) *field.Path { return field.NewPath("spec", "resourceTemplates").Index(i) }

// remoteObjectKey identifies an object on a target. An object without a namespace is
// in the default one, if its kind is namespaced.
func remoteObjectKey(remote *unstructured.Unstructured) string {
	namespace := cmp.Or(remote.GetNamespace(), metav1.NamespaceDefault)
	return remote.GroupVersionKind().GroupKind().String() + " " + namespace + "/" + remote.GetName()
}

func validateTemplateMeta(meta v1alpha2.TemplateMeta, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(meta.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), meta.Name, problem))
	}
	errs = append(errs, metavalidation.ValidateLabels(meta.Labels, path.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(meta.Annotations, path.Child("annotations"))...)
	errs = append(errs, validateOwnershipAnnotations(meta.Annotations, path.Child("annotations"))...)
	if text, set := meta.Annotations[v1alpha1.DriftAnnotation]; set {
		_, malformed := parseOneOf(text, path.Child("annotations").Key(v1alpha1.DriftAnnotation), v1alpha1.DriftCorrect, v1alpha1.DriftReport)
		errs = append(errs, malformed...)
	}
	if _, set := meta.Annotations[v1alpha1.ReleaseAnnotation]; set {
		errs = append(errs, field.Forbidden(path.Child("annotations").Key(v1alpha1.ReleaseAnnotation), "is only for an object that is being deleted while its target is unreachable; leave it out"))
	}
	for _, key := range reservedLabels {
		if _, set := meta.Labels[key]; set {
			errs = append(errs, field.Forbidden(path.Child("labels").Key(key), "is set by Portico only; leave it out"))
		}
	}
	return errs
}

// validateTemplateIdentity refuses a template that names another object than before:
// its KubernetesApplicationResource belongs to one object on the target.
func validateTemplateIdentity(app, old *v1alpha2.KubernetesApplication) field.ErrorList {
	before := map[string][]*unstructured.Unstructured{}
	for _, template := range old.Spec.ResourceTemplates {
		if remote := TemplateObject(template.Spec.Template); remote != nil {
			before[template.Metadata.Name] = append(before[template.Metadata.Name], remote)
		}
	}
	times := map[string]int{}
	for _, template := range app.Spec.ResourceTemplates {
		times[template.Metadata.Name]++
	}
	var errs field.ErrorList
	for i, template := range app.Spec.ResourceTemplates {
		is := TemplateObject(template.Spec.Template)
		if is == nil || times[template.Metadata.Name] > 1 { // a duplicate name is refused with another error
			continue
		}
		var changes field.ErrorList
		for _, was := range before[template.Metadata.Name] { // one template, unless admission was unavailable
			if changes = validateSameObject(was, is, templatePath(i).Child("spec", "template")); len(changes) == 0 {
				break
			}
		}
		errs = append(errs, changes...)
	}
	return errs
}

func validateSameObject(was, is *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct{ name, was, is string }{
		{"apiVersion", was.GetAPIVersion(), is.GetAPIVersion()},
		{"kind", was.GetKind(), is.GetKind()},
		{"metadata.name", was.GetName(), is.GetName()},
		{"metadata.namespace", was.GetNamespace(), is.GetNamespace()},
	} {
		if part.was != part.is {
			errs = append(errs, field.Forbidden(path.Child(part.name), fmt.Sprintf(
				"cannot change from %q, because the object on the target would be orphaned; give the template another metadata.name, and the old object is deleted",
				part.was)))
		}
	}
	return errs
}
