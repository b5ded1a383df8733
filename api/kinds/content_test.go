package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProjectContent(t *testing.T) {
	cases := map[string]struct {
		reason, native, want string
		taken                map[string]any
	}{
		"Secret": {
			reason: "The resource of a Secret has no data, also not in an annotation.",
			native: `{apiVersion: v1, kind: Secret, metadata: {name: sql, namespace: shop, uid: u, labels: {team: a, workload.crossplane.io/schedule: remote},
  annotations: {note: mine, kubectl.kubernetes.io/last-applied-configuration: "secret"}}, type: Opaque, immutable: true, data: {a: Yg==}}`,
			want:  `{apiVersion: v1, kind: Secret, metadata: {name: sql, namespace: shop, labels: {team: a}}, type: Opaque, immutable: true}`,
			taken: map[string]any{"data": map[string]any{"a": "Yg=="}},
		},
		"ConfigMap": {
			reason: "The resource of a ConfigMap has no data.",
			native: `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {a: b}, binaryData: {c: AA==}}`,
			want:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}`,
			taken:  map[string]any{"data": map[string]any{"a": "b"}, "binaryData": map[string]any{"c": "AA=="}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			native := read(t, tc.native)
			kind, known := For(native.GroupVersionKind())
			if !known {
				t.Fatal("the kind is not sent")
			}
			got, err := Project(kind, native)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(t, tc.want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(read(t, tc.native), native); diff != "" {
				t.Errorf("projecting changed the native object:\n%s", diff)
			}
			if diff := cmp.Diff([]string{}, append([]string{}, ContentFields(got)...)); diff != "" {
				t.Errorf("there is content in the template: %s", diff)
			}
			if diff := cmp.Diff(tc.taken, RemoveContent(native)); diff != "" {
				t.Errorf("want what is in it taken out\n%s", diff)
			}
			if _, found2 := native.Object["data"]; found2 || native.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"] != "" {
				t.Error("something of it is left")
			}
			if _, partial := CachedObject(kind).(*metav1.PartialObjectMetadata); !partial {
				t.Error("want the metadata alone kept in memory")
			}
		})
	}
	other := read(t, `{apiVersion: example.org/v1, kind: Secret, metadata: {name: a}, data: {a: b}}`)
	if taken := RemoveContent(other); taken != nil || other.Object["data"] == nil {
		t.Error("a kind of the same name in another group was stripped")
	}
}

func TestContentIsNotProjected(t *testing.T) {
	for _, kind := range []Kind{Secret{}, ConfigMap{}} {
		native := New(kind)
		native.SetName("a")
		if patch := OptIn(native, nil); len(patch) > 0 {
			t.Errorf("a namespace labelled a %s: %v", native.GetKind(), patch)
		}
		native.SetLabels(map[string]string{"workload.crossplane.io/schedule": "remote"})
		if patch, err := Hold(kind, native, nil, Anyone); err != nil || len(patch) > 0 {
			t.Errorf("there is nothing to hold of a %s, and it got %v, %v", native.GetKind(), patch, err)
		}
		if _, whole := CachedObject(Deployment{}).(*metav1.PartialObjectMetadata); whole {
			t.Error("want all of a Deployment kept in memory")
		}
	}
}
