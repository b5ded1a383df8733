package packs

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
)

const samples = "../../config/samples/packs"

// minimalGCP returns the sample pack.
func minimalGCP(t testing.TB) *v1alpha1.ResourcePack {
	t.Helper()
	pack, err := Load(os.DirFS(samples + "/minimal-gcp"))
	if err != nil {
		t.Fatal(err)
	}
	return pack
}

// smallInfra returns the sample instance, with the UID of the seed.
func smallInfra(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(samples + "/small-infra.yaml")
	if err != nil {
		t.Fatal(err)
	}
	instance := decode(t, string(content))
	instance.SetUID("34646233-f58e-4c99-b0a8-0d766533b12c")
	return instance
}

func decode(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCheckSample(t *testing.T) {
	report := Check(minimalGCP(t))
	if len(report.Problems)+len(report.Warnings) > 0 {
		t.Fatalf("problems: %v\nwarnings: %v", report.Problems, report.Warnings)
	}
	const want = "9 resources of 8 kinds from 20 files; variables REGION GCP_PROJECT_ID CRED_SECRET_KEY CRED_SECRET_NAME CRED_SECRET_NAMESPACE"
	if diff := cmp.Diff(want, report.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// text formats resources as YAML.
func text(t testing.TB, objects []*unstructured.Unstructured) string {
	t.Helper()
	var out []string
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(content))
	}
	return strings.Join(out, "---\n")
}

// toJSON converts YAML.
func toJSON(text string) []byte {
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return out
}
