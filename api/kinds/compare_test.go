package kinds

import "testing"

func TestSameJSON(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		want   bool
	}{
		"OrderOfKeys": {
			reason: "Two encoders may order the keys of a map differently; nothing changed.",
			a:      `{"a": 1, "b": {"c": [1, 2], "d": null}}`,
			b:      `{"b":{"d":null,"c":[1,2]},"a":1}`,
			want:   true,
		},
		"OrderOfItems": {
			reason: "The order of a list means something.",
			a:      `[1, 2]`,
			b:      `[2, 1]`,
		},
		"LargeNumbers": {
			reason: "Two numbers that a float cannot tell apart are two numbers.",
			a:      `{"n": 9007199254740992}`,
			b:      `{"n": 9007199254740993}`,
		},
		"NullIsNotAbsent": {
			reason: "A key that is null asks for something else than no key.",
			a:      `{"a": null}`,
			b:      `{}`,
		},
		"EmptyIsNotNull": {
			reason: "An empty list is not null.",
			a:      `{"a": []}`,
			b:      `{"a": null}`,
		},
		"NotJSON": {
			reason: "What cannot be read is not the same as something else.",
			a:      `{`,
			b:      `{}`,
		},
		"NotJSONTwice": {
			reason: "The same bytes are the same, whatever they are.",
			a:      `{`,
			b:      `{`,
			want:   true,
		},
		"Nothing": {
			reason: "No document is not an empty one.",
			a:      ``,
			b:      `{}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := EqualJSON([]byte(tc.a), []byte(tc.b)); got != tc.want {
				t.Errorf("SameJSON = %t, want %t: %s", got, tc.want, tc.reason)
			}
			if got := EqualJSON([]byte(tc.b), []byte(tc.a)); got != tc.want {
				t.Errorf("SameJSON the other way round = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestSameButForGeneration(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		want   bool
	}{
		"Generation": {
			reason: "That the hub counted on is no reason to write on the target.",
			a:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "1", "a": "b"}}}`,
			b:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "2", "a": "b"}}}`,
			want:   true,
		},
		"OnlyGeneration": {
			reason: "A stamp that is the only annotation leaves none behind.",
			a:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "1"}}}`,
			b:      `{"metadata": {}}`,
			want:   true,
		},
		"Annotation": {
			reason: "Every other annotation counts.",
			a:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "1", "a": "b"}}}`,
			b:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "1"}}}`,
		},
		"LargeNumbers": {
			reason: "Two numbers that a float cannot tell apart are two numbers.",
			a:      `{"spec": {"n": 9007199254740992}}`,
			b:      `{"spec": {"n": 9007199254740993}}`,
		},
		"NotJSON": {
			reason: "What cannot be read is to be replaced.",
			a:      `{`,
			b:      `{`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := EqualExceptGeneration([]byte(tc.a), []byte(tc.b)); got != tc.want {
				t.Errorf("SameButForGeneration = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}
