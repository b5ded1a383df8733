package policies

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// AdoptionPolicyOf reads whether a resource takes over an object that exists on the
// target already. A malformed annotation reads as Never.
func AdoptionPolicyOf(object metav1.Object) v1alpha1.AdoptionPolicy {
	if len(validateOwnershipAnnotations(object.GetAnnotations(), nil)) > 0 {
		return v1alpha1.AdoptNever
	}
	return cmp.Or(v1alpha1.AdoptionPolicy(object.GetAnnotations()[v1alpha1.AdoptAnnotation]), v1alpha1.AdoptNever)
}

// DeletionPolicyOf reads whether the object on the target is deleted together with
// its resource. An unknown value is an error, and has no default.
func DeletionPolicyOf(object metav1.Object) (v1alpha1.DeletionPolicy, field.ErrorList) {
	text, set := object.GetAnnotations()[v1alpha1.DeletionAnnotation]
	if !set {
		return v1alpha1.DeletionDelete, nil
	}
	return v1alpha1.DeletionPolicy(text), validateOneOf(annotationsPath.Key(v1alpha1.DeletionAnnotation), text, deletions)
}

var (
	annotationsPath = field.NewPath("metadata", "annotations")
	adoptions       = []v1alpha1.AdoptionPolicy{v1alpha1.AdoptNever, v1alpha1.AdoptIfUnowned, v1alpha1.AdoptForce}
	deletions       = []v1alpha1.DeletionPolicy{v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan}
)

// validateOwnershipAnnotations validates the annotations that decide about adoption
// and deletion of the object on the target.
func validateOwnershipAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if text, set := annotations[v1alpha1.AdoptAnnotation]; set {
		errs = append(errs, validateOneOf(path.Key(v1alpha1.AdoptAnnotation), text, adoptions)...)
	}
	if text, set := annotations[v1alpha1.DeletionAnnotation]; set {
		errs = append(errs, validateOneOf(path.Key(v1alpha1.DeletionAnnotation), text, deletions)...)
	}
	return errs
}

func validateOneOf[T ~string](path *field.Path, text string, values []T) field.ErrorList {
	if slices.Contains(values, T(text)) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, T(text), values)}
}

// validateReleaseAnnotation validates the annotation that leaves the objects of a
// resource or an application on their target. Only an object that is being deleted
// may have it.
func validateReleaseAnnotation(object metav1.Object) field.ErrorList {
	text, set := object.GetAnnotations()[v1alpha1.ReleaseAnnotation]
	path := annotationsPath.Key(v1alpha1.ReleaseAnnotation)
	switch {
	case !set:
		return nil
	case text != "true":
		return validateOneOf(path, text, []string{"true"})
	case object.GetDeletionTimestamp() != nil:
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "is only for an object that is being deleted while its target is unreachable; delete it first")}
}

// DriftPolicyOf reads the drift policy of an object, or else of its namespace. An
// unknown value is an error and not the default: the default would undo changes
// that a user meant to keep.
func DriftPolicyOf(object, namespace metav1.Object) (v1alpha1.DriftPolicy, field.ErrorList) {
	text, ok := firstValue(v1alpha1.DriftAnnotation, object.GetAnnotations(), namespace.GetAnnotations())
	if !ok {
		return v1alpha1.DriftCorrect, nil
	}
	return parseOneOf(text, annotationsPath.Key(v1alpha1.DriftAnnotation), v1alpha1.DriftCorrect, v1alpha1.DriftReport)
}

// ObservePolicyOf returns the observe policy of an object; "" without the annotation.
func ObservePolicyOf(object metav1.Object) (v1alpha1.ObservePolicy, field.ErrorList) {
	text, ok := object.GetAnnotations()[v1alpha1.ObserveAnnotation]
	if !ok {
		return "", nil
	}
	return parseOneOf(text, annotationsPath.Key(v1alpha1.ObserveAnnotation), v1alpha1.ObserveStatus, v1alpha1.ObserveFull)
}

// ValidateDriftAndObserve validates the drift and observe annotations of a native
// object.
func ValidateDriftAndObserve(native metav1.Object) field.ErrorList {
	_, errs := DriftPolicyOf(native, &metav1.ObjectMeta{})
	_, malformed := ObservePolicyOf(native)
	return append(errs, malformed...)
}

// parseOneOf returns a text as one of the allowed values.
func parseOneOf[T ~string](text string, path *field.Path, allowed ...T) (T, field.ErrorList) {
	if errs := validateOneOf(path, text, allowed); len(errs) > 0 {
		return "", errs
	}
	return T(text), nil
}
