package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/test/apiserver"
)

// TestSelectorImmutability changes the form of an application's selector, which is
// allowed, and then its meaning.
func TestSelectorImmutability(t *testing.T) {
	cfg := apiserver.Start(t, func(e *envtest.Environment) {
		e.CRDDirectoryPaths = []string{filepath.Join(apiserver.Root(t), "config", "crd", "bases")}
	})
	cluster, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]any{"env": "prod"}
	expressions := []any{map[string]any{"key": "gpu", "operator": "Exists"}}
	cases := map[string]struct {
		reason  string
		was, is map[string]any // nil means that the field is absent
		changes bool
	}{
		"EmptyToEmptyLabels": {reason: "An empty selector and empty labels select all objects.", was: map[string]any{}, is: map[string]any{"matchLabels": map[string]any{}}},
		"EmptyLabelsToEmpty": {reason: "Empty labels and an empty selector select all objects.", was: map[string]any{"matchLabels": map[string]any{}}, is: map[string]any{}},
		"AbsentToEmpty":      {reason: "A missing selector selects all objects.", is: map[string]any{"matchLabels": map[string]any{}}},
		"EmptyToAbsent":      {reason: "A missing selector selects all objects.", was: map[string]any{}},
		"EmptyExpressions":   {reason: "An empty list of expressions has no effect.", was: map[string]any{"matchLabels": labels}, is: map[string]any{"matchLabels": labels, "matchExpressions": []any{}}},
		"LabelsAdded":        {reason: "The new selector selects fewer objects.", was: map[string]any{}, is: map[string]any{"matchLabels": labels}, changes: true},
		"LabelsRemoved":      {reason: "The new selector selects more objects.", was: map[string]any{"matchLabels": labels}, changes: true},
		"ExpressionsAdded":   {reason: "The new selector selects fewer objects.", was: map[string]any{"matchLabels": labels}, is: map[string]any{"matchLabels": labels, "matchExpressions": expressions}, changes: true},
		"ExpressionsRemoved": {reason: "The new selector selects more objects.", was: map[string]any{"matchExpressions": expressions}, is: map[string]any{}, changes: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			app := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			app.SetAPIVersion("workload.crossplane.io/v1alpha2")
			app.SetKind("KubernetesApplication")
			app.SetNamespace("default")
			app.SetName(strings.ToLower(name))
			set := func(selector map[string]any) {
				unstructured.RemoveNestedField(app.Object, "spec", "targetSelector")
				if selector != nil {
					if err := unstructured.SetNestedMap(app.Object, selector, "spec", "targetSelector"); err != nil {
						t.Fatal(err)
					}
				}
			}
			set(tc.was)
			if err := cluster.Create(t.Context(), app); err != nil {
				t.Fatal(err)
			}
			set(tc.is)
			switch err := cluster.Update(t.Context(), app); {
			case !tc.changes && err != nil:
				t.Errorf("%s Refused: %v", tc.reason, err)
			case tc.changes && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.targetSelector")):
				t.Errorf("%s Want Invalid of spec.targetSelector, got %v", tc.reason, err)
			}
		})
	}
}

// TestSelectorRules compares the rules of the two versions, because an API server
// without Portico's conversion stores only one version.
func TestSelectorRules(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(apiserver.Root(t), "config", "crd", "bases", "workload.crossplane.io_kubernetesapplications.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		t.Fatal(err)
	}
	rules := map[string][]string{}
	for _, version := range crd.Spec.Versions {
		for _, rule := range version.Schema.OpenAPIV3Schema.Properties["spec"].XValidations {
			rules[version.Name] = append(rules[version.Name], strings.ReplaceAll(rule.Rule+rule.FieldPath, "clusterSelector", "targetSelector"))
		}
	}
	if diff := cmp.Diff(rules["v1alpha2"], rules["v1alpha1"]); diff != "" || len(rules["v1alpha1"]) == 0 {
		t.Errorf("the versions differ about a change (-v1alpha2 +v1alpha1):\n%s", diff)
	}
}
