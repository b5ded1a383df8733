// Package manifests renders what config installs, for tests that install it.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/portico-io/portico/test/apiserver"
)

// Render builds a kustomization below config, in the order kubectl applies it.
func Render(t testing.TB, overlay string) []*unstructured.Unstructured {
	t.Helper()
	dir := filepath.Join(apiserver.Root(t), "config", overlay)
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as kubectl does
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("rendering config/%s: %v", overlay, err)
	}
	data, err := rendered.AsYaml()
	if err != nil {
		t.Fatalf("rendering config/%s: %v", overlay, err)
	}
	objects, err := decode(data)
	if err != nil {
		t.Fatalf("reading config/%s: %v", overlay, err)
	}
	return objects
}

func decode(data []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			out = append(out, object)
		}
	}
}

// Apply applies objects in order, the way kubectl apply --server-side does, and
// refuses what the API server does not know.
func Apply(t testing.TB, cluster client.Client, objects ...*unstructured.Unstructured) {
	t.Helper()
	strict := client.WithFieldValidation(cluster, "Strict")
	for _, object := range objects {
		data, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		// Patch, because Apply does not hand the field validation on.
		if err := strict.Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.ApplyPatchType, data),
			client.FieldOwner("installer"), client.ForceOwnership); err != nil {
			t.Fatalf("applying %s: %v", Name(object), err)
		}
	}
}

// Name says which object it is.
func Name(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", object.GetKind(), client.ObjectKeyFromObject(object))
}

// RedirectWebhooks makes the webhook configurations among the objects call the
// server at base, an https:// URL, instead of a Service: where tests run there
// is no network that Services could be reached by.
func RedirectWebhooks(t testing.TB, objects []*unstructured.Unstructured, base string, caBundle string) {
	t.Helper()
	for _, object := range objects {
		webhooks, found, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			continue
		}
		for _, webhook := range webhooks {
			webhook := webhook.(map[string]any)
			path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			if err != nil {
				t.Fatal(err)
			}
			config := map[string]any{"url": base + path}
			if caBundle != "" {
				config["caBundle"] = caBundle
			}
			webhook["clientConfig"] = config
		}
		object.Object["webhooks"] = webhooks
	}
}
