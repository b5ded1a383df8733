package packs

import (
	"errors"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
)

var update = flag.Bool("update", false, "write the resources of small-infra to the golden file")

// TestSmallInfra compares the resources of the sample instance with the golden file.
func TestSmallInfra(t *testing.T) {
	objects, err := Render(minimalGCP(t), smallInfra(t))
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/small-infra.yaml"
	got := text(t, objects)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the resources have changed; if that is right, run the test with -update (-want +got):\n%s", diff)
	}
}

// expectedClass is the example of the design of resource packs. There its instance is
// called minimal-setup by mistake, and the owner reference is no controller.
const expectedClass = `
apiVersion: database.gcp.crossplane.io/v1beta1
kind: CloudSQLInstanceClass
metadata:
  labels:
    "foo-key": bar-value
    gcp.resourcepacks.crossplane.io/name: small-infra
    gcp.resourcepacks.crossplane.io/uid: 34646233-f58e-4c99-b0a8-0d766533b12c
  annotations:
    resourceclass.crossplane.io/is-default-class: "true"
  name: small-infra-cloudsqlinstance-mysql
  ownerReferences:
  - apiVersion: gcp.resourcepacks.crossplane.io/v1alpha1
    kind: MinimalGCP
    name: small-infra
    uid: 34646233-f58e-4c99-b0a8-0d766533b12c
    controller: true
    blockOwnerDeletion: true
specTemplate:
  forProvider:
    databaseVersion: MYSQL_5_7
    region: us-west2
    settings:
      dataDiskSizeGb: 10
      dataDiskType: PD_SSD
      ipConfiguration:
        ipv4Enabled: false
        privateNetworkRef:
          name: small-infra-network
      tier: db-n1-standard-1
  providerRef:
    name: small-infra-gcp-provider
  reclaimPolicy: Delete
  writeConnectionSecretsToNamespace: crossplane-system
`

func TestExpectedClass(t *testing.T) {
	objects, err := Render(minimalGCP(t), smallInfra(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetName() == "small-infra-cloudsqlinstance-mysql" {
			if diff := cmp.Diff(text(t, []*unstructured.Unstructured{decode(t, expectedClass)}), text(t, []*unstructured.Unstructured{object})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			return
		}
	}
	t.Error("the class does not exist")
}

// TestRegion: another region changes the resources that depend on it, and no other. The
// pack and the instance do not change.
func TestRegion(t *testing.T) {
	pack, instance := minimalGCP(t), smallInfra(t)
	before, err := Render(pack, instance)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(smallInfra(t), instance); diff != "" {
		t.Errorf("the instance (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(minimalGCP(t), pack); diff != "" {
		t.Errorf("the pack (-before +after):\n%s", diff)
	}
	if err := unstructured.SetNestedField(instance.Object, "us-east1", "spec", "region"); err != nil {
		t.Fatal(err)
	}
	after, err := Render(pack, instance)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for i := range after {
		if !cmp.Equal(before[i], after[i]) {
			changed = append(changed, after[i].GetName())
		}
	}
	want := []string{"small-infra-subnetwork", "small-infra-gkecluster", "small-infra-cloudmemorystore", "small-infra-cloudsqlinstance-mysql", "small-infra-cloudsqlinstance-postgresql"}
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRender(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		edit   func(*v1alpha1.ResourcePack)
		// want are parts of the resources.
		want []string
	}{
		"Types": {
			reason: "A variable that is the whole field keeps the type of its value.",
			files:  withResource("apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: other\nspec:\n  region: $(SIZE)\n"),
			edit: func(p *v1alpha1.ResourcePack) {
				p.Spec.Variables = []v1alpha1.Variable{{Name: "SIZE", FieldPath: "spec.size"}}
			},
			want: []string{"region: 3\n", "region: eu\n"},
		},
		"Tier": {
			reason: "The first tier whose expression is true is rendered.",
			files:  map[string]string{"resources/large/kustomization.yaml": "resources: [a.yaml]\n", "resources/large/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\n"},
			edit: func(p *v1alpha1.ResourcePack) {
				p.Spec.Tiers = []v1alpha1.Tier{{When: "self.spec.size > 10", Path: "resources"}, {When: "self.spec.size > 2", Path: "resources/large/"}}
			},
			want: []string{"name: one-large\n"},
		},
		"Overlay": {
			reason: "A binding copies a field with its type, and has no effect without the field.",
			edit: func(p *v1alpha1.ResourcePack) {
				p.Spec.Overlays = []v1alpha1.Overlay{{APIVersion: "example.org/v1", Kind: "Thing", Name: "thing", Bindings: []v1alpha1.Binding{
					{From: "spec.size", To: "spec.nodes.count"}, {From: "spec.no", To: "spec.region"},
				}}}
			},
			want: []string{"  nodes:\n    count: 3\n  region: eu\n"},
		},
		"CommonLabels": {
			reason: "kustomize still has commonLabels. Those of the template do not change selectors, and those of a folder do.",
			files: map[string]string{
				kustomizationFile:      "resources: [web.yaml]\ncommonLabels: {folder: yes-it-is}\n",
				"resources/web.yaml":   deployment(""),
				"resources/thing.yaml": "",
				templateFile:           "commonLabels: {template: a, packs.example.org/uid: \"\"}\n",
			},
			want: []string{"      app: web\n      folder: yes-it-is\n  template:\n", "    template: a\n  name: one-web\n"},
		},
		"Replacements": {
			reason: "The template may refer to the instance in replacements, although its name gets the prefix.",
			files: map[string]string{templateFile: "vars:\n- name: REGION\n  objref: {kind: Small, apiVersion: packs.example.org/v1, name: \"\"}\n  fieldref: {fieldPath: spec.region}\n" +
				"replacements:\n- source: {kind: Small, fieldPath: spec.size}\n  targets:\n  - select: {kind: Thing}\n    fieldPaths: [spec.size]\n    options: {create: true}\n"},
			want: []string{"  size: 3\n"},
		},
		"Patches": {
			reason: "Patches and components of the folder are applied.",
			files: map[string]string{
				kustomizationFile:                "resources: [thing.yaml]\ncomponents: [c]\nconfigurations: [kustomizeconfig.yaml]\npatches:\n- path: patch.json\n  target: {kind: Thing}\n",
				"resources/patch.json":           `[{"op": "add", "path": "/spec/size", "value": 5}]`,
				"resources/c/kustomization.yaml": "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\ncommonAnnotations: {a: b}\n",
			},
			want: []string{"  size: 5\n", "  annotations:\n    a: b\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pack := small(tc.files)
			if tc.edit != nil {
				tc.edit(pack)
			}
			objects, err := Render(pack, decode(t, smallInstance))
			if err != nil {
				t.Fatal(err)
			}
			got := text(t, objects)
			for _, part := range tc.want {
				if !strings.Contains(got, part) {
					t.Errorf("%s\n%q is missing in:\n%s", tc.reason, part, got)
				}
			}
		})
	}
}

// TestOptions adds patchers to the built-in ones, as the design of resource packs does.
func TestOptions(t *testing.T) {
	pack := small(map[string]string{templateFile: ""})
	addVar := func(instance *unstructured.Unstructured, k *types.Kustomization) error {
		gvk := instance.GroupVersionKind()
		k.Vars = append(k.Vars, types.Var{
			Name: "REGION",
			ObjRef: types.Target{
				Gvk: resid.Gvk{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}, APIVersion: instance.GetAPIVersion(), Name: instance.GetName(),
			},
			FieldRef: types.FieldSelector{FieldPath: "spec.region"},
		})
		return nil
	}
	annotate := func(_ *unstructured.Unstructured, children []*unstructured.Unstructured) error {
		for _, child := range children {
			child.SetAnnotations(map[string]string{"owner": child.GetOwnerReferences()[0].Name})
		}
		return nil
	}
	objects, err := Render(pack, decode(t, smallInstance),
		WithKustomizationPatchers(KustomizationPatcherFunc(addVar)), WithChildResourcePatchers(ChildResourcePatcherFunc(annotate)))
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, objects); !strings.Contains(got, "region: eu\n") || !strings.Contains(got, "owner: one\n") {
		t.Errorf("the patchers had no effect:\n%s", got)
	}
	failure := errors.New("no quota")
	if _, err := Render(pack, decode(t, smallInstance), WithKustomizationPatchers(KustomizationPatcherFunc(
		func(*unstructured.Unstructured, *types.Kustomization) error { return failure }))); err == nil || !strings.Contains(err.Error(), "no quota") {
		t.Errorf("a patcher fails: %v", err)
	}
	if _, err := Render(pack, decode(t, smallInstance), WithKustomizationPatchers(KustomizationPatcherFunc(
		func(_ *unstructured.Unstructured, k *types.Kustomization) error {
			k.HelmCharts = []types.HelmChart{{Name: "a"}}
			return nil
		}))); err == nil || !strings.Contains(err.Error(), "helmCharts: the field is not allowed") {
		t.Errorf("a patcher adds a chart: %v", err)
	}
}

// TestConcurrent renders in several goroutines. The race detector finds two runs of
// kustomize at a time.
func TestConcurrent(t *testing.T) {
	pack, instance := minimalGCP(t), smallInfra(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 3 {
				if _, err := Render(pack, instance); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
