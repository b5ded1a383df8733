package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Validator is a Kind with objects that cannot be held.
type Validator interface {
	Kind

	// Validate returns the reasons why an object cannot be held, or cannot be let go. It is
	// called for an object that is labelled remote, or was before this change. old is nil
	// on create.
	Validate(object, old *unstructured.Unstructured) field.ErrorList
}

// Validate returns the reasons why an object cannot be held, or cannot be let go.
func Validate(k Kind, object, old *unstructured.Unstructured) field.ErrorList {
	if v, ok := k.(Validator); ok && (IsRemote(object) || IsRemote(old)) {
		return v.Validate(object, old)
	}
	return nil
}

var (
	schedulePath    = field.NewPath("metadata", "labels").Key(v1alpha1.ScheduleLabel)
	annotationsPath = field.NewPath("metadata", "annotations")
)
