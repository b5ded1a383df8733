package consumers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// argoCD returns the health in Argo CD, such as Healthy, and "" for an object of a kind
// that has none.
func argoCD(t *testing.T, object *unstructured.Unstructured) outcome {
	t.Helper()
	health := stateInArgoCD(t, object, nil).Health
	return outcome{State: health.Status, Message: health.Message}
}

// argoCDState is the state of an object in Argo CD.
type argoCDState struct {
	Health     struct{ Status, Message string }
	Difference []map[string]any
}

func stateInArgoCD(t *testing.T, object, manifest *unstructured.Unstructured) argoCDState {
	t.Helper()
	process, err := startArgoCD()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.questions.Encode(struct{ Object, Manifest *unstructured.Unstructured }{object, manifest}); err != nil {
		t.Fatal(err)
	}
	var out argoCDState
	if err := process.states.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// argoCDProcess is a process of test/argocd, which ends with this one.
type argoCDProcess struct {
	questions *json.Encoder
	states    *json.Decoder
}

var startArgoCD = sync.OnceValues(func() (*argoCDProcess, error) {
	cmd := exec.Command("go", "run", ".")
	cmd.Dir, cmd.Stderr = "../argocd", os.Stderr
	questions, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	states, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &argoCDProcess{json.NewEncoder(questions), json.NewDecoder(states)}, cmd.Start()
})

// ignoredDifferences are the fields that ignoreDifferences must name, as docs/gitops.md
// says.
var ignoredDifferences = map[string][]string{
	"PodDisruptionBudget": {"spec", "selector", "matchLabels", v1alpha1.ScheduleLabel},
}

// TestInSync: Argo CD shows no difference between a manifest and the object of it that is
// held on the hub, with the fields that Portico adds.
func TestInSync(t *testing.T) {
	for _, kind := range kinds.All {
		name := kind.GroupVersionKind().Kind
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "..", "api", "kinds", "testdata", "samples", kind.Resource()+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			manifest := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(text, manifest); err != nil {
				t.Fatal(err)
			}
			manifest.SetNamespace(namespace)
			object := manifest.DeepCopy()
			labels := manifest.GetLabels()
			labels[v1alpha1.ScheduleLabel] = v1alpha1.ScheduleRemote
			object.SetLabels(labels)
			if _, err := kinds.Hold(kind, object, nil, kinds.Anyone); err != nil {
				t.Fatal(err)
			}
			if ignored, found := ignoredDifferences[name]; found {
				if len(stateInArgoCD(t, object, manifest).Difference) == 0 {
					t.Errorf("%v has no difference, and is ignored", ignored)
				}
				unstructured.RemoveNestedField(object.Object, ignored...)
			}
			if difference := stateInArgoCD(t, object, manifest).Difference; len(difference) > 0 {
				t.Errorf("Argo CD would sync it, -object +synced:\n%s", cmp.Diff(difference[0], difference[1]))
			}
		})
	}
}
