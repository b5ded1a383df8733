package input

import (
	"reflect"
	"strings"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// Schema returns the JSON schema of a type's input; nil for a Library, which has no
// input. describe returns the description of a field of a Go type. It may be nil.
//
// The schema uses only keywords of OPA's type checker. The type checker ignores a
// schema below oneOf and anyOf, so a field with several possible types has no schema.
func Schema(t policyv1alpha1.PolicyType, describe func(typeName, field string) string) map[string]any {
	in := Empty(t)
	if in == nil {
		return nil
	}
	if describe == nil {
		describe = func(string, string) string { return "" }
	}
	schema := schemaOf(reflect.TypeOf(in).Elem(), describe)
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	schema["title"] = "Input of a " + string(t) + " policy, version " + Version
	return schema
}

func schemaOf(t reflect.Type, describe func(string, string) string) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), describe)
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), describe)}
	case reflect.Map:
		// a map[string]any has any fields of a user
		schema := map[string]any{"type": "object", "additionalProperties": true}
		if t.Elem().Kind() != reflect.Interface {
			schema["additionalProperties"] = schemaOf(t.Elem(), describe)
		}
		return schema
	case reflect.Struct:
		return schemaOfStruct(t, describe)
	default:
		return map[string]any{}
	}
}

func schemaOfStruct(t reflect.Type, describe func(string, string) string) map[string]any {
	properties := map[string]any{}
	required := []any{}
	for i := range t.NumField() {
		name, optional := jsonName(t.Field(i))
		property := schemaOf(t.Field(i).Type, describe)
		if text := describe(t.Name(), t.Field(i).Name); text != "" {
			property["description"] = text
		}
		properties[name] = property
		if !optional {
			required = append(required, name)
		}
	}
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}

func jsonName(field reflect.StructField) (name string, omitEmpty bool) {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name, options == "omitempty"
}
