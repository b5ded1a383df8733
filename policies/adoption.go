package policies

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// AdoptionOf reads what becomes of an object that exists already where a resource
// would make one. What is malformed adopts nothing.
func AdoptionOf(object metav1.Object) v1alpha1.AdoptionPolicy {
	if len(problemsOfOwnership(object.GetAnnotations(), nil)) > 0 {
		return v1alpha1.AdoptNever
	}
	return cmp.Or(v1alpha1.AdoptionPolicy(object.GetAnnotations()[v1alpha1.AdoptAnnotation]), v1alpha1.AdoptNever)
}

// DeletionOf reads what becomes of a resource's object when the resource is
// deleted. The problems are of a value that is neither: nobody may guess then.
func DeletionOf(object metav1.Object) (v1alpha1.DeletionPolicy, field.ErrorList) {
	text, says := object.GetAnnotations()[v1alpha1.DeletionAnnotation]
	if !says {
		return v1alpha1.DeletionDelete, nil
	}
	return v1alpha1.DeletionPolicy(text), oneOf(ownAnnotations.Key(v1alpha1.DeletionAnnotation), text, deletions)
}

var (
	ownAnnotations = field.NewPath("metadata", "annotations")
	adoptions      = []v1alpha1.AdoptionPolicy{v1alpha1.AdoptNever, v1alpha1.AdoptIfUnowned, v1alpha1.AdoptForce}
	deletions      = []v1alpha1.DeletionPolicy{v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan}
)

// problemsOfOwnership judges the annotations that say whose an object on a target
// is, and stays.
func problemsOfOwnership(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if text, says := annotations[v1alpha1.AdoptAnnotation]; says {
		errs = append(errs, oneOf(path.Key(v1alpha1.AdoptAnnotation), text, adoptions)...)
	}
	if text, says := annotations[v1alpha1.DeletionAnnotation]; says {
		errs = append(errs, oneOf(path.Key(v1alpha1.DeletionAnnotation), text, deletions)...)
	}
	return errs
}

func oneOf[T ~string](path *field.Path, text string, values []T) field.ErrorList {
	if slices.Contains(values, T(text)) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, T(text), values)}
}

// problemsOfRelease judges an annotation that gives up what a resource or an
// application has on its target. It is for what is being deleted, which is not
// judged any more.
func problemsOfRelease(object metav1.Object) field.ErrorList {
	text, says := object.GetAnnotations()[v1alpha1.ReleaseAnnotation]
	path := ownAnnotations.Key(v1alpha1.ReleaseAnnotation)
	switch {
	case !says:
		return nil
	case text != "true":
		return oneOf(path, text, []string{"true"})
	}
	return field.ErrorList{field.Forbidden(path, "is for what is being deleted, and waits for a target that is away; delete it first")}
}
