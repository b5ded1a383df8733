package input

import (
	"reflect"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Term converts an input, or a part of one, to what Rego evaluates. It is what
// encoding and decoding it as JSON would give, without doing so.
func Term(value any) *ast.Term {
	return term(reflect.ValueOf(value))
}

func term(v reflect.Value) *ast.Term {
	switch v.Kind() {
	case reflect.Invalid:
		return ast.NullTerm()
	case reflect.Pointer:
		return term(v.Elem())
	case reflect.String:
		return ast.InternedTerm(v.String())
	case reflect.Bool:
		return ast.InternedTerm(v.Bool())
	case reflect.Int:
		return ast.InternedTerm(int(v.Int()))
	case reflect.Slice:
		elements := make([]*ast.Term, v.Len())
		for i := range elements {
			elements[i] = term(v.Index(i))
		}
		return ast.ArrayTerm(elements...)
	case reflect.Struct:
		return ast.ObjectTerm(Fields(v.Interface())...)
	default:
		// Maps and what is in them are plain JSON values.
		converted, err := ast.InterfaceToValue(v.Interface())
		if err != nil {
			return ast.NullTerm()
		}
		return ast.NewTerm(converted)
	}
}

// Fields converts the fields of an input, except those named in without.
func Fields(value any, without ...string) [][2]*ast.Term {
	v := reflect.Indirect(reflect.ValueOf(value))
	fields := make([][2]*ast.Term, 0, v.NumField())
next:
	for i := range v.NumField() {
		name, omitEmpty := jsonName(v.Type().Field(i))
		for _, skip := range without {
			if name == skip {
				continue next
			}
		}
		if omitEmpty && empty(v.Field(i)) {
			continue
		}
		fields = append(fields, [2]*ast.Term{ast.InternedTerm(name), term(v.Field(i))})
	}
	return fields
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}
