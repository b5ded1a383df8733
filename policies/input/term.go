package input

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Term converts an input, or a part of one, to a term of Rego. The term is the same as
// that of the input encoded as JSON.
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
		// Maps and their values are plain JSON values.
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
	for i := range v.NumField() {
		name, omitEmpty := jsonName(v.Type().Field(i))
		if slices.Contains(without, name) || omitEmpty && empty(v.Field(i)) {
			continue
		}
		fields = append(fields, [2]*ast.Term{ast.InternedTerm(name), term(v.Field(i))})
	}
	return fields
}

// Digest is the SHA-256 sum of one field of an input.
type Digest struct {
	Name string
	Sum  [sha256.Size]byte
}

// Digests returns the digest of each field of an input, except those named in without.
// Inputs with equal digests of a field are equal in that field.
func Digests(value any, without ...string) ([]Digest, error) {
	v := reflect.Indirect(reflect.ValueOf(value))
	digests := make([]Digest, 0, v.NumField())
	for i := range v.NumField() {
		name, _ := jsonName(v.Type().Field(i))
		if slices.Contains(without, name) {
			continue
		}
		content, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
		digests = append(digests, Digest{Name: name, Sum: sha256.Sum256(content)})
	}
	return digests, nil
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}
