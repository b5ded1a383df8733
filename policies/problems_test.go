package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// problem has the parts of an error that a client can use: the field and the type.
type problem struct {
	Type  field.ErrorType
	Field string
}

func problems(errs field.ErrorList) []problem {
	var out []problem
	for _, err := range errs {
		out = append(out, problem{err.Type, err.Field})
	}
	return out
}

func read[T any](t testing.TB, text string) *T {
	t.Helper()
	if text == "" {
		return nil
	}
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// object decodes an object; nil for an empty text.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	return &unstructured.Unstructured{Object: *read[map[string]any](t, text)}
}

func TestAdded(t *testing.T) {
	at := field.NewPath("spec", "items")
	wrong := func(index int, value string) *field.Error {
		return field.Invalid(at.Index(index).Child("name"), value, "is wrong")
	}
	cases := map[string]struct {
		reason      string
		now, before field.ErrorList
		want        field.ErrorList
	}{
		"New": {
			reason: "A new error is returned.",
			now:    field.ErrorList{wrong(0, "a")},
			want:   field.ErrorList{wrong(0, "a")},
		},
		"Old": {
			reason: "An old error is not returned.",
			now:    field.ErrorList{wrong(0, "a")},
			before: field.ErrorList{wrong(0, "a")},
		},
		"Moved": {
			reason: "An old error may have another index.",
			now:    field.ErrorList{wrong(0, "a")},
			before: field.ErrorList{wrong(2, "a")},
		},
		"WrongOtherwise": {
			reason: "Another invalid value in the same field is a new error.",
			now:    field.ErrorList{wrong(0, "b")},
			before: field.ErrorList{wrong(0, "a")},
			want:   field.ErrorList{wrong(0, "b")},
		},
		"OneMore": {
			reason: "A second error like an old one is new.",
			now:    field.ErrorList{wrong(0, "a"), wrong(1, "a")},
			before: field.ErrorList{wrong(0, "a")},
			want:   field.ErrorList{wrong(1, "a")},
		},
		"PutRight": {
			reason: "A corrected error is not returned.",
			before: field.ErrorList{wrong(0, "a")},
		},
		"AnotherField": {
			reason: "The same message for another field is a new error.",
			now:    field.ErrorList{field.Required(field.NewPath("spec", "b"), "")},
			before: field.ErrorList{field.Required(field.NewPath("spec", "a"), "")},
			want:   field.ErrorList{field.Required(field.NewPath("spec", "b"), "")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, RatchetErrors(tc.now, tc.before)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
