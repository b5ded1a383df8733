// Package observed reads and replaces the generations that the status of an object reports.
package observed

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// field is the field in which controllers report a generation: in the status,
// or in each condition.
const field = "observedGeneration"

// Newest returns the generation that a status reports, or else the highest
// one in it: a condition that did not change may keep an older one.
func Newest(status map[string]any) (newest int64, reported bool) {
	if own, found, _ := unstructured.NestedInt64(status, field); found {
		return own, true
	}
	Replace(status, func(generation int64) int64 {
		newest, reported = max(newest, generation), true
		return generation
	})
	return newest, reported
}

// Replace replaces each generation in a value. It removes a generation that becomes 0.
func Replace(value any, replace func(int64) int64) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			Replace(item, replace)
		}
	case map[string]any:
		for key, item := range v {
			generation, ok := item.(int64)
			if key != field || !ok {
				Replace(item, replace)
				continue
			}
			if now := replace(generation); now > 0 {
				v[key] = now
			} else {
				delete(v, key)
			}
		}
	}
}
