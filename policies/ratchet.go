package policies

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Added returns those of now's problems that before did not have: what was wrong
// already may stay, so that an object can be edited towards right.
func Added(now, before field.ErrorList) field.ErrorList {
	known := map[string]int{}
	for _, problem := range before {
		known[identity(problem)]++
	}
	var out field.ErrorList
	for _, problem := range now {
		if known[identity(problem)] > 0 {
			known[identity(problem)]--
			continue
		}
		out = append(out, problem)
	}
	return out
}

var index = regexp.MustCompile(`\[\d+\]`)

// identity tells one problem from another. An item of a list may have moved.
func identity(problem *field.Error) string {
	return index.ReplaceAllString(problem.Field, "[]") + ": " + problem.ErrorBody()
}
