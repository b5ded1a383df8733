// Package fields reads and changes fields of unstructured objects. A change of an object that
// admission makes is a JSON patch.
package fields

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Child returns an object in a field of an object; nil if there is none.
func Child(object map[string]any, key string) map[string]any {
	fields, _ := object[key].(map[string]any)
	return fields
}

// Items returns the objects of a list. It skips other values.
func Items(list any) []map[string]any {
	values, _ := list.([]any)
	var out []map[string]any
	for _, value := range values {
		if object, ok := value.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

// String returns the text in a field; "" if there is none.
func String(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

// RemoveItems removes items from a list of objects, and an empty list from its object.
func RemoveItems(object any, key string, match func(map[string]any) bool) {
	fields, _ := object.(map[string]any)
	list, _ := fields[key].([]any)
	if list == nil {
		return
	}
	list = slices.DeleteFunc(list, func(item any) bool {
		fields, ok := item.(map[string]any)
		return ok && match(fields)
	})
	if fields[key] = list; len(list) == 0 {
		delete(fields, key)
	}
}

// HasManager tells whether a manager has a field of a new object, by its managed fields. A
// field that an admission plugin of the API server filled in has no manager. Without
// managed fields the answer is true.
func HasManager(object *unstructured.Unstructured, path ...string) bool {
	entries := object.GetManagedFields()
	if len(entries) == 0 {
		return true
	}
	keys := make([]string, 0, len(path))
	for _, name := range path {
		keys = append(keys, "f:"+name)
	}
	for _, entry := range entries {
		var owned map[string]any
		if entry.FieldsV1 == nil || json.NewDecoder(entry.FieldsV1.GetRawReader()).Decode(&owned) != nil {
			continue
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(owned, keys...); found {
			return true
		}
	}
	return false
}
