package policies

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RatchetErrors returns the errors of an object that its stored form does not have.
// An object that is invalid already can so be updated in steps.
func RatchetErrors(errs, stored field.ErrorList) field.ErrorList {
	known := map[string]int{}
	for _, err := range stored {
		known[errorKey(err)]++
	}
	var out field.ErrorList
	for _, err := range errs {
		if known[errorKey(err)] > 0 {
			known[errorKey(err)]--
			continue
		}
		out = append(out, err)
	}
	return out
}

var listIndex = regexp.MustCompile(`\[\d+\]`)

// errorKey identifies an error. It ignores the index of a list item, which may have
// moved.
func errorKey(err *field.Error) string {
	return listIndex.ReplaceAllString(err.Field, "[]") + ": " + err.ErrorBody()
}
