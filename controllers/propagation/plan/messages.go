package plan

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsNamespaceMissing tells whether a request failed because the namespace of its object
// does not exist.
func IsNamespaceMissing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) &&
		status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// UnknownKindMessage reports a kind that a target does not have.
func UnknownKindMessage(target string, gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("target %s does not know kind %s of %s", target, gvk.Kind, gvk.GroupVersion())
}

// RefusalMessage reports the refusal of an object by a target.
func RefusalMessage(target string, object *unstructured.Unstructured, err error) string {
	return fmt.Sprintf("target %s refused %s %s: %s", target, object.GetKind(), object.GetName(), ErrorMessage(err))
}

// ErrorMessage returns the message of a target's error.
func ErrorMessage(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// maxListed bounds the items in a message.
const maxListed = 10

// joinLimited joins the first items of a list, and counts the others.
func joinLimited[T any](all []T, separator string, write func(T) string) string {
	parts := make([]string, 0, len(all))
	for i, item := range all {
		if i == maxListed {
			parts = append(parts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		parts = append(parts, write(item))
	}
	return strings.Join(parts, separator)
}
