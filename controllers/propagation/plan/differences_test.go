package plan

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/google/go-cmp/cmp"
)

func TestDifferences(t *testing.T) {
	cases := map[string]struct {
		reason            string
		desired, observed string
		want              []string
	}{
		"Same":          {reason: "Equal objects have no difference.", desired: `{a: 1, b: [x], c: {d: true}}`, observed: `{a: 1, b: [x], c: {d: true}}`},
		"Defaults":      {reason: "Defaults of the target are no difference.", desired: `{containers: [{name: web}]}`, observed: `{containers: [{name: web, imagePullPolicy: Always}], dnsPolicy: ClusterFirst}`},
		"Numbers":       {reason: "Equal numbers in different notations are no difference.", desired: `{a: 1.0}`, observed: `{a: 1}`},
		"NumberAndText": {reason: "A number and a text differ.", desired: `{a: 1}`, observed: `{a: "1"}`, want: []string{".a"}},
		"Null":          {reason: "A desired null is no difference.", desired: `{a: null}`, observed: `{a: 1}`},
		"Absent":        {reason: "All missing fields are named in order.", desired: `{c: {d: 1, a: x}, b: y}`, observed: `{}`, want: []string{".b", ".c.a", ".c.d"}},
		"EmptyMap":      {reason: "The target may drop an empty map.", desired: `{emptyDir: {}, list: []}`, observed: `{}`},
		"OtherShape":    {reason: "A map differs from a list and from a text.", desired: `{a: {b: 1}, c: [1]}`, observed: `{a: x, c: x}`, want: []string{".a", ".c"}},
		"ItemAdded":     {reason: "An added item of a keyed list is no difference at any position.", desired: `{containers: [{name: web, image: a}]}`, observed: `{containers: [{name: mesh}, {name: web, image: a}]}`},
		"ItemChanged":   {reason: "An item of a keyed list is found by its key.", desired: `{containers: [{name: a, image: x}, {name: b, image: y}]}`, observed: `{containers: [{name: b, image: z}, {name: a, image: x}]}`, want: []string{".containers[name=b].image"}},
		"ItemGone":      {reason: "A missing item of a keyed list is named by its key.", desired: `{containers: [{name: a}, {name: b}]}`, observed: `{containers: [{name: a}]}`, want: []string{".containers[name=b]"}},
		"TwoProtocols":  {reason: "The key of a port is its number and its protocol.", desired: `{ports: [{port: 53, protocol: UDP, nodePort: 1}, {port: 53, protocol: TCP, nodePort: 2}]}`, observed: `{ports: [{port: 53, protocol: TCP, nodePort: 2}, {port: 53, protocol: UDP, nodePort: 1}]}`},
		"Unnamed":       {reason: "A list of texts is compared as a whole, because one text may explain the next.", desired: `{args: [a, b]}`, observed: `{args: [b, a]}`, want: []string{".args"}},
		"UnnamedItems":  {reason: "Items without a key are compared by position.", desired: `{rules: [{x: 1}, {x: 2}]}`, observed: `{rules: [{x: 1}, {x: 3}]}`, want: []string{".rules[1].x"}},
		"UnnamedMore":   {reason: "An added item of a list without keys is a difference.", desired: `{args: [a]}`, observed: `{args: [a, b]}`, want: []string{".args"}},
		"SameName":      {reason: "Keys that are not unique are not used.", desired: `{rules: [{name: a, x: 1}, {name: a, x: 2}]}`, observed: `{rules: [{name: a, x: 1}, {name: a, x: 3}]}`, want: []string{".rules[1].x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, DifferingPaths(fieldsOf(t, tc.desired), fieldsOf(t, tc.observed))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeducedTypes shows why Differences does not use the comparison of
// structured-merge-diff: without the schema of the target, it replaces a list as a
// whole.
func TestDeducedTypes(t *testing.T) {
	containers := func(names ...string) map[string]any {
		var items []any
		for _, name := range names {
			items = append(items, map[string]any{"name": name, "image": name + ":1"})
		}
		return map[string]any{"spec": map[string]any{"containers": items}}
	}
	desired, observed := containers("web"), containers("web", "injected")
	if paths := DifferingPaths(desired, observed); len(paths) > 0 {
		t.Errorf("a container that others added differs at %v", paths)
	}
	deduced := func(object map[string]any) *typed.TypedValue {
		t.Helper()
		value, err := typed.DeducedParseableType.FromUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	merged, err := deduced(observed).Merge(deduced(desired))
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := deduced(observed).Compare(merged)
	if err != nil {
		t.Fatal(err)
	}
	if comparison.IsSame() {
		t.Error("structured-merge-diff matches the items of lists without a schema; use it in Differences")
	}
}
