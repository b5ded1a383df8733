package manifests

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/test/apiserver"
	"github.com/portico-io/portico/test/cluster/install"
)

// render builds a kustomization in config, in the order of kubectl apply.
func render(t testing.TB, overlay string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := install.Render(filepath.Join(apiserver.Root(t), "config", overlay))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// apply applies objects in their order, as kubectl apply --server-side does. It fails
// for a field that the API server does not have.
func apply(t testing.TB, cluster client.Client, objects ...*unstructured.Unstructured) {
	t.Helper()
	strict := client.WithFieldValidation(cluster, "Strict")
	for _, object := range objects {
		data, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		// Apply does not support field validation.
		if err := strict.Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.ApplyPatchType, data),
			client.FieldOwner("installer"), client.ForceOwnership); err != nil {
			t.Fatalf("applying %s %s: %v", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
}
