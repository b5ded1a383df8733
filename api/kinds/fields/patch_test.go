package fields

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	evanphx "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// read returns an object, in YAML.
func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}

// apply applies a patch as the API server does.
func apply(t *testing.T, object *unstructured.Unstructured, p Patch) *unstructured.Unstructured {
	t.Helper()
	if len(p) == 0 {
		return object
	}
	before, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := evanphx.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		t.Fatalf("applying %s: %v", encoded, err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(after); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSet(t *testing.T) {
	path := []string{"metadata", "annotations", "example.com/a~b"}
	for name, tc := range map[string]struct {
		reason, object string
		want           Patch
	}{
		"Absent":   {reason: "The key is escaped in the path.", object: `{kind: A, metadata: {annotations: {c: d}}}`, want: Patch{{Operation: "add", Path: "/metadata/annotations/example.com~1a~0b", Value: "v"}}},
		"Same":     {reason: "An equal value is not patched.", object: `{kind: A, metadata: {annotations: {example.com/a~b: v}}}`},
		"Other":    {reason: "Another value is replaced.", object: `{kind: A, metadata: {annotations: {example.com/a~b: w}}}`, want: Patch{{Operation: "replace", Path: "/metadata/annotations/example.com~1a~0b", Value: "v"}}},
		"Null":     {reason: "A null is replaced.", object: `{kind: A, metadata: {annotations: {example.com/a~b: null}}}`, want: Patch{{Operation: "replace", Path: "/metadata/annotations/example.com~1a~0b", Value: "v"}}},
		"NoMap":    {reason: "A missing map is added as a whole.", object: `{kind: A, metadata: {}}`, want: Patch{{Operation: "add", Path: "/metadata/annotations", Value: map[string]any{"example.com/a~b": "v"}}}},
		"NullMap":  {reason: "A null map is added as a whole.", object: `{kind: A, metadata: {annotations: null}}`, want: Patch{{Operation: "add", Path: "/metadata/annotations", Value: map[string]any{"example.com/a~b": "v"}}}},
		"NoParent": {reason: "A missing parent is added as a whole.", object: `{kind: A}`, want: Patch{{Operation: "add", Path: "/metadata", Value: map[string]any{"annotations": map[string]any{"example.com/a~b": "v"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			before, object := read(t, tc.object), read(t, tc.object)
			got := Set(object, "v", path...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(object.Object, apply(t, before, got).Object); diff != "" {
				t.Errorf("the patch and the object it was made on differ, -object +patched:\n%s", diff)
			}
			if found2 := Set(object, "v", path...); found2 != nil {
				t.Errorf("setting twice is not setting once: %v", found2)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, object, old string
		want                Patch
	}{
		"Same":    {reason: "Equal values are not patched.", object: `{kind: A, status: {a: 1}}`, old: `{kind: A, status: {a: 1}}`},
		"Other":   {reason: "The old value is restored in one operation.", object: `{kind: A, status: {a: 1, b: 2}}`, old: `{kind: A, status: {c: {d: 3}}}`, want: Patch{jsonpatch.NewOperation("replace", "/status", map[string]any{"c": map[string]any{"d": int64(3)}})}},
		"Added":   {reason: "An added value is removed.", object: `{kind: A, status: {a: 1}}`, old: `{kind: A}`, want: Patch{jsonpatch.NewOperation("remove", "/status", nil)}},
		"Removed": {reason: "A removed value is added.", object: `{kind: A}`, old: `{kind: A, status: {a: 1}}`, want: Patch{jsonpatch.NewOperation("add", "/status", map[string]any{"a": int64(1)})}},
		"Neither": {reason: "Missing values are not patched.", object: `{kind: A}`, old: `{kind: A}`},
	} {
		t.Run(name, func(t *testing.T) {
			before, object, old := read(t, tc.object), read(t, tc.object), read(t, tc.old)
			got := Replace(object, old, "status")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(old.Object, apply(t, before, got).Object); diff != "" {
				t.Errorf("%s\nnot restored, -old +patched:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	replicaSet := func(replicas int64, time, label string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "ReplicaSet",
			"metadata": map[string]any{
				"name":            "web",
				"resourceVersion": time,
				"labels":          map[string]any{"workload.crossplane.io/schedule": "remote", "more": label},
				"managedFields":   []any{map[string]any{"manager": "kube-controller-manager", "time": time}},
			},
			"spec": map[string]any{"replicas": replicas},
		}}
	}
	cases := map[string]struct {
		reason string
		old    *unstructured.Unstructured
		want   []string // the paths that are changed
	}{
		"Undone": {
			reason: "If the pin reverts the only change, the managed fields are restored too.",
			old:    replicaSet(0, "1", "a"),
			want:   []string{"/spec/replicas", "/metadata/managedFields"},
		},
		"MoreToIt": {
			reason: "If there is another change, the managed fields are kept.",
			old:    replicaSet(0, "1", "b"),
			want:   []string{"/spec/replicas"},
		},
		"New": {
			reason: "A new object has no managed fields to restore.",
			want:   []string{"/spec/replicas"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := replicaSet(2, "2", "a")
			patch := RestoreManagedFields(Set(object, int64(0), "spec", "replicas"), object, tc.old)
			var got []string
			for _, operation := range patch {
				got = append(got, operation.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}
