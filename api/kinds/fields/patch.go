package fields

import (
	"maps"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Patch is a JSON patch (RFC 6902). It changes no other fields of the object.
type Patch []jsonpatch.Operation

// Set returns the patch that sets a field, and applies it to object as well, so
// that the next decision builds on it. It is nil when the field has the value.
func Set(object *unstructured.Unstructured, value any, path ...string) Patch {
	current, found, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	if found && equality.Semantic.DeepEqual(current, value) {
		return nil
	}
	operation := jsonpatch.NewOperation("add", pointer(path), value)
	if found {
		operation.Operation = "replace"
	}
	// The first missing parent is added whole, with the value inside.
	for depth := 1; depth < len(path); depth++ {
		parent, ok, _ := unstructured.NestedFieldNoCopy(object.Object, path[:depth]...)
		if ok && parent != nil {
			continue
		}
		nested := value
		for i := len(path) - 1; i >= depth; i-- {
			nested = map[string]any{path[i]: nested}
		}
		operation = jsonpatch.NewOperation("add", pointer(path[:depth]), nested)
		unstructured.RemoveNestedField(object.Object, path[:depth]...) // a null would be in the way
		break
	}
	_ = unstructured.SetNestedField(object.Object, value, path...)
	return Patch{operation}
}

// SetInList is Set for a field of an item of a list.
func SetInList(object *unstructured.Unstructured, value any, list []string, index int, path ...string) Patch {
	values, _, _ := unstructured.NestedFieldNoCopy(object.Object, list...)
	item := &unstructured.Unstructured{Object: Items(values)[index]}
	patch := Set(item, value, path...)
	for i := range patch {
		patch[i].Path = pointer(list) + "/" + strconv.Itoa(index) + patch[i].Path
	}
	return patch
}

// Remove returns the patch that removes a field, and applies it to object. It
// is nil when the field is absent.
func Remove(object *unstructured.Unstructured, path ...string) Patch {
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, path...); !found {
		return nil
	}
	unstructured.RemoveNestedField(object.Object, path...)
	return Patch{jsonpatch.NewOperation("remove", pointer(path), nil)}
}

// RemoveEmpty returns the patch that removes a field without content.
func RemoveEmpty(object *unstructured.Unstructured, path ...string) Patch {
	value, found, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	if fields, ok := value.(map[string]any); found && ok && len(fields) == 0 {
		return Remove(object, path...)
	}
	return nil
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(path []string) string {
	var b strings.Builder
	for _, segment := range path {
		b.WriteByte('/')
		b.WriteString(escaper.Replace(segment))
	}
	return b.String()
}

// Replace returns the patch that gives object the value old has at a top-level
// field, such as status; it is nil when both have the same.
func Replace(object, old *unstructured.Unstructured, key string) Patch {
	value, found := old.Object[key]
	if !found {
		return Remove(object, key)
	}
	return Set(object, value, key)
}

// RestoreManagedFields extends a patch after which an object differs from the old one at
// most in its managed fields: with the extension the write changes nothing. Without it
// the API server would store a new time in managedFields. That is an event, after which
// a controller would write its status once more.
func RestoreManagedFields(patch Patch, object, old *unstructured.Unstructured) Patch {
	if old == nil || len(patch) == 0 || !equality.Semantic.DeepEqual(withoutBookkeeping(object), withoutBookkeeping(old)) {
		return patch
	}
	fields, found, _ := unstructured.NestedFieldNoCopy(old.Object, "metadata", "managedFields")
	if !found {
		return append(patch, Remove(object, "metadata", "managedFields")...)
	}
	return append(patch, Set(object, fields, "metadata", "managedFields")...)
}

// withoutBookkeeping returns an object without managedFields and resourceVersion.
func withoutBookkeeping(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	delete(metadata, "resourceVersion")
	content["metadata"] = metadata
	return content
}
