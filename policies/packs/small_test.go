package packs

import (
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
)

// small returns a pack with one resource, a Thing, whose instances have a region. The
// files replace those of the pack; an empty file is removed.
func small(files map[string]string) *v1alpha1.ResourcePack {
	all := map[string]string{
		"resources/kustomization.yaml.tmpl": "vars:\n- name: REGION\n  objref: {kind: Small, apiVersion: packs.example.org/v1, name: \"\"}\n  fieldref: {fieldPath: spec.region}\n",
		"resources/kustomization.yaml":      "resources:\n- thing.yaml\nconfigurations:\n- kustomizeconfig.yaml\n",
		"resources/kustomizeconfig.yaml":    "varReference:\n- path: spec/region\n  kind: Thing\n",
		"resources/thing.yaml":              "apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: thing\nspec:\n  region: $(REGION)\n",
	}
	maps.Copy(all, files)
	maps.DeleteFunc(all, func(_, content string) bool { return content == "" })
	return &v1alpha1.ResourcePack{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: v1alpha1.ResourcePackSpec{
			CRD:     v1alpha1.InstanceDefinition{Group: "packs.example.org", Version: "v1", Kind: "Small", Plural: "smalls"},
			Files:   all,
			Example: &apiextensionsv1.JSON{Raw: []byte(smallInstance)},
		},
	}
}

const smallInstance = `{"apiVersion": "packs.example.org/v1", "kind": "Small", "metadata": {"name": "one"}, "spec": {"region": "eu", "size": 3}}`

// withResource returns the files of a small pack with another resource.
func withResource(content string) map[string]string {
	return map[string]string{
		"resources/kustomization.yaml": "resources:\n- thing.yaml\n- other.yaml\nconfigurations:\n- kustomizeconfig.yaml\n",
		"resources/other.yaml":         content,
	}
}
