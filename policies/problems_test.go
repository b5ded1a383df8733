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
			reason: "What was right before must stay right.",
			now:    field.ErrorList{wrong(0, "a")},
			want:   field.ErrorList{wrong(0, "a")},
		},
		"Old": {
			reason: "What was wrong before may stay, so that other things can be put right.",
			now:    field.ErrorList{wrong(0, "a")},
			before: field.ErrorList{wrong(0, "a")},
		},
		"Moved": {
			reason: "An item is the same item when those before it are removed.",
			now:    field.ErrorList{wrong(0, "a")},
			before: field.ErrorList{wrong(2, "a")},
		},
		"WrongOtherwise": {
			reason: "One wrong value does not buy another.",
			now:    field.ErrorList{wrong(0, "b")},
			before: field.ErrorList{wrong(0, "a")},
			want:   field.ErrorList{wrong(0, "b")},
		},
		"OneMore": {
			reason: "One old mistake does not excuse two.",
			now:    field.ErrorList{wrong(0, "a"), wrong(1, "a")},
			before: field.ErrorList{wrong(0, "a")},
			want:   field.ErrorList{wrong(1, "a")},
		},
		"PutRight": {
			reason: "Nothing is wrong any more.",
			before: field.ErrorList{wrong(0, "a")},
		},
		"AnotherField": {
			reason: "The same words about another field are another problem.",
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
