package kinds

import "testing"

func TestSameButForGeneration(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		want   bool
	}{
		"Generation": {
			reason: "A change of only the hub's generation is no change on the target.",
			a:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "1", "a": "b"}}}`,
			b:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "2", "a": "b"}}}`,
			want:   true,
		},
		"OnlyGeneration": {
			reason: "Annotations with only the hub's generation equal no annotations.",
			a:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "1"}}}`,
			b:      `{"metadata": {}}`,
			want:   true,
		},
		"Annotation": {
			reason: "A change of another annotation is a change.",
			a:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "1", "a": "b"}}}`,
			b:      `{"metadata": {"annotations": {"workload.crossplane.io/hub-generation": "1"}}}`,
		},
		"LargeNumbers": {
			reason: "Large numbers are compared exactly.",
			a:      `{"spec": {"n": 9007199254740992}}`,
			b:      `{"spec": {"n": 9007199254740993}}`,
		},
		"NotJSON": {
			reason: "An invalid document is replaced.",
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
