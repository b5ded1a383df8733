package conversion_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"math/rand"
	"sigs.k8s.io/randfill"

	"github.com/portico-io/portico/api/workload/conversion"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// filler fills objects with whatever their types can hold.
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

// TestRoundTrips loses nothing on the way to the other version and back.
func TestRoundTrips(t *testing.T) {
	fill := filler(t, 1)
	for range 2000 {
		old, stored, back := &v1alpha1.KubernetesApplication{}, &v1alpha2.KubernetesApplication{}, &v1alpha1.KubernetesApplication{}
		fill.Fill(old)
		old.TypeMeta = back.TypeMeta
		before := old.DeepCopy()
		conversion.Up(old, stored)
		conversion.Down(stored, back)
		if diff := cmp.Diff(before, back); diff != "" {
			t.Fatalf("v1alpha1 is another after a round trip (-before +after):\n%s", diff)
		}
	}
	for range 2000 {
		stored, old, back := &v1alpha2.KubernetesApplication{}, &v1alpha1.KubernetesApplication{}, &v1alpha2.KubernetesApplication{}
		fill.Fill(stored)
		stored.TypeMeta = back.TypeMeta
		before := stored.DeepCopy()
		conversion.Down(stored, old)
		conversion.Up(old, back)
		if diff := cmp.Diff(before, back); diff != "" {
			t.Fatalf("v1alpha2 is another after a round trip (-before +after):\n%s", diff)
		}
	}
}

// TestNothingShared keeps what was converted apart from what it came from.
func TestNothingShared(t *testing.T) {
	old, stored := &v1alpha1.KubernetesApplication{}, &v1alpha2.KubernetesApplication{}
	filler(t, 2).NilChance(0).NumElements(1, 2).Fill(old)
	before := old.DeepCopy()
	conversion.Up(old, stored)
	stored.Spec.TargetRef.Name, stored.Spec.ResourceTemplates[0].Metadata.Name = "another", "another"
	stored.Spec.ResourceTemplates[0].Spec.Template.Raw[0] = 'x'
	stored.Labels["another"] = "label"
	if !equality.Semantic.DeepEqual(before, old) {
		t.Error("a change of what was converted changed what it came from")
	}
}

// FuzzConversion reads what a user may write, and writes it back the same.
func FuzzConversion(f *testing.F) {
	for _, seed := range []string{
		`{"spec": {}}`,
		`{"metadata": {"name": "a"}, "spec": {"clusterSelector": {"matchLabels": {"a": "b"}}, "clusterRef": {"name": "c"}}}`,
		`{"spec": {"resourceTemplates": [{"metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}}, "spec": {"secrets": [{"name": "e"}], "template": {"kind": "F", "n": 9007199254740993}}}]}}`,
		`{"spec": {"resourceTemplates": [], "tolerations": [{"key": "a"}]}, "status": {"state": "Submitted", "desiredResources": 1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		old := &v1alpha1.KubernetesApplication{}
		if json.Unmarshal(data, old) != nil {
			return
		}
		stored, back := &v1alpha2.KubernetesApplication{}, &v1alpha1.KubernetesApplication{TypeMeta: old.TypeMeta}
		conversion.Up(old, stored)
		conversion.Down(stored, back)
		if diff := cmp.Diff(old, back); diff != "" {
			t.Errorf("a round trip changed it (-before +after):\n%s", diff)
		}
	})
}
