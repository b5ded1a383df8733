package conversion_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"math/rand"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"

	"github.com/portico-io/portico/api/workload/conversion"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// filler fills objects with random values in all fields.
func filler(t testing.TB, seed int64) *randfill.Filler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	templates := func(serializer.CodecFactory) []any {
		return []any{func(raw *runtime.RawExtension, c randfill.Continue) {
			data, err := json.Marshal(map[string]any{"kind": c.String(0), "number": c.Int63(), "text": []string{c.String(0)}})
			if err != nil {
				t.Fatal(err)
			}
			*raw = runtime.RawExtension{Raw: data}
		}}
	}
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, templates)
	return fuzzer.FuzzerFor(funcs, rand.NewSource(seed), serializer.NewCodecFactory(scheme)).NilChance(0.3).NumElements(0, 4)
}

// written returns an application with random values as decoded JSON.
func written(t *testing.T, object runtime.Object, apiVersion string) *unstructured.Unstructured {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out.Object); err != nil {
		t.Fatal(err)
	}
	out.SetAPIVersion(apiVersion)
	out.SetKind("KubernetesApplication")
	return out
}

// roundTrip converts an application to the other version and back. The type of the
// other version must have every field.
func roundTrip(t *testing.T, from *unstructured.Unstructured, to runtime.Object, apiVersion string) {
	t.Helper()
	before := from.DeepCopy()
	there, err := conversion.Convert(from, apiVersion)
	if err != nil {
		t.Fatal(err)
	}
	data, err := there.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if unknown, err := kjson.UnmarshalStrict(data, to); err != nil || len(unknown) > 0 {
		t.Fatalf("the type of %s lacks fields of the object: %v %v", apiVersion, err, unknown)
	}
	back, err := conversion.Convert(there, before.GetAPIVersion())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object, back.Object); diff != "" {
		t.Fatalf("%s is another after a round trip (-before +after):\n%s", before.GetAPIVersion(), diff)
	}
	if diff := cmp.Diff(before.Object, from.Object); diff != "" {
		t.Fatalf("the conversion changed its source (-before +after):\n%s", diff)
	}
}

var (
	old = v1alpha1.GroupVersion.String()
	now = v1alpha2.GroupVersion.String()
)

// TestRoundTrips: a conversion to the other version and back changes nothing.
func TestRoundTrips(t *testing.T) {
	fill := filler(t, 1)
	for range 2000 {
		app := &v1alpha1.KubernetesApplication{}
		fill.Fill(app)
		roundTrip(t, written(t, app, old), &v1alpha2.KubernetesApplication{}, now)
	}
	for range 2000 {
		app := &v1alpha2.KubernetesApplication{}
		fill.Fill(app)
		roundTrip(t, written(t, app, now), &v1alpha1.KubernetesApplication{}, old)
	}
}

func TestConvert(t *testing.T) {
	application := func(apiVersion string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "KubernetesApplication", "spec": spec}}
	}
	empty := func() map[string]any { return map[string]any{"matchLabels": map[string]any{}} }
	cases := map[string]struct {
		reason   string
		old, now map[string]any
	}{
		"Names":         {"The reference to the target is renamed.", map[string]any{"clusterRef": map[string]any{"name": "eu"}}, map[string]any{"targetRef": map[string]any{"name": "eu"}}},
		"EmptySelector": {"An empty selector stays empty.", map[string]any{"clusterSelector": map[string]any{}}, map[string]any{"targetSelector": map[string]any{}}},
		"EmptyLabels":   {"Empty labels stay empty.", map[string]any{"clusterSelector": empty()}, map[string]any{"targetSelector": empty()}},
		"Absent":        {"A missing field stays missing.", map[string]any{}, map[string]any{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := conversion.Convert(application(old, tc.old), now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(application(now, tc.now), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got, err = conversion.Convert(got, old); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(application(old, tc.old), got); diff != "" {
				t.Errorf("%s And back (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := conversion.Convert(application(old, nil), v1alpha1.Group+"/v9"); err == nil {
		t.Error("version v9 does not exist, and was converted")
	}
}

// FuzzConversion converts applications from any JSON to the other version and back.
func FuzzConversion(f *testing.F) {
	for _, seed := range []string{
		`{"spec": {}}`,
		`{"metadata": {"name": "a"}, "spec": {"clusterSelector": {"matchLabels": {"a": "b"}}, "clusterRef": {"name": "c"}}}`,
		`{"spec": {"clusterSelector": {"matchLabels": {}}}}`,
		`{"spec": {"resourceTemplates": [{"metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}}, "spec": {"secrets": [{"name": "e"}], "template": {"kind": "F", "n": 9007199254740993}}}]}}`,
		`{"spec": {"resourceTemplates": [], "tolerations": [{"key": "a"}]}, "status": {"state": "Submitted", "desiredResources": 1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if json.Unmarshal(data, &v1alpha1.KubernetesApplication{}) != nil {
			return
		}
		from := &unstructured.Unstructured{}
		if kjson.UnmarshalCaseSensitivePreserveInts(data, &from.Object) != nil || from.Object == nil {
			return
		}
		if spec, ok := from.Object["spec"].(map[string]any); ok { // a field of the other version is not kept
			delete(spec, "targetSelector")
			delete(spec, "targetRef")
		}
		from.SetAPIVersion(old)
		there, err := conversion.Convert(from, now)
		if err != nil {
			t.Fatal(err)
		}
		back, err := conversion.Convert(there, old)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(from.Object, back.Object); diff != "" {
			t.Errorf("a round trip changed it (-before +after):\n%s", diff)
		}
	})
}
