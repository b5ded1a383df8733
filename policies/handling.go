package policies

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// DriftOf reads what an object, or else its namespace, says about what somebody
// changes on the target. A value that is none is an error, and nothing is decided
// by it: to take it for the default would undo what somebody meant to keep.
func DriftOf(object, namespace metav1.Object) (v1alpha1.DriftPolicy, field.ErrorList) {
	text, ok := first(v1alpha1.DriftAnnotation, object.GetAnnotations(), namespace.GetAnnotations())
	if !ok {
		return v1alpha1.DriftCorrect, nil
	}
	return choice(text, ownAnnotations.Key(v1alpha1.DriftAnnotation), v1alpha1.DriftCorrect, v1alpha1.DriftReport)
}

// ObserveOf reads what a native object says about what of it is shown on the hub;
// "" when it says nothing.
func ObserveOf(object metav1.Object) (v1alpha1.ObservePolicy, field.ErrorList) {
	text, ok := object.GetAnnotations()[v1alpha1.ObserveAnnotation]
	if !ok {
		return "", nil
	}
	return choice(text, ownAnnotations.Key(v1alpha1.ObserveAnnotation), v1alpha1.ObserveStatus, v1alpha1.ObserveFull)
}

// ProblemsOfHandling are those of what a native object says itself about how it is
// treated on its target.
func ProblemsOfHandling(native metav1.Object) field.ErrorList {
	_, errs := DriftOf(native, &metav1.ObjectMeta{})
	_, malformed := ObserveOf(native)
	return append(errs, malformed...)
}

// choice reads one of some words.
func choice[T ~string](text string, path *field.Path, allowed ...T) (T, field.ErrorList) {
	if errs := oneOf(path, text, allowed); len(errs) > 0 {
		return "", errs
	}
	return T(text), nil
}
