package fields

import "testing"

func TestSameJSON(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		want   bool
	}{
		"OrderOfKeys": {
			reason: "The order of the keys of a map does not matter.",
			a:      `{"a": 1, "b": {"c": [1, 2], "d": null}}`,
			b:      `{"b":{"d":null,"c":[1,2]},"a":1}`,
			want:   true,
		},
		"OrderOfItems": {
			reason: "The order of a list matters.",
			a:      `[1, 2]`,
			b:      `[2, 1]`,
		},
		"LargeNumbers": {
			reason: "Large numbers are compared exactly.",
			a:      `{"n": 9007199254740992}`,
			b:      `{"n": 9007199254740993}`,
		},
		"NullIsNotAbsent": {
			reason: "A null differs from a missing key.",
			a:      `{"a": null}`,
			b:      `{}`,
		},
		"EmptyIsNotNull": {
			reason: "An empty list differs from a null.",
			a:      `{"a": []}`,
			b:      `{"a": null}`,
		},
		"NotJSON": {
			reason: "An invalid document differs from other documents.",
			a:      `{`,
			b:      `{}`,
		},
		"NotJSONTwice": {
			reason: "Equal bytes are equal, even if invalid.",
			a:      `{`,
			b:      `{`,
			want:   true,
		},
		"Nothing": {
			reason: "A missing document differs from an empty one.",
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
