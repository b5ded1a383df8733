package manifests

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/test/apiserver"
	"github.com/portico-io/portico/test/cluster/install"
)

// TestNamespace renders overlays with another namespace. All occurrences of the name
// must differ, and nothing else.
func TestNamespace(t *testing.T) {
	overlays, err := filepath.Glob("testdata/namespace/*")
	if err != nil || len(overlays) == 0 {
		t.Fatalf("there are no overlays to render (%v)", err)
	}
	for _, dir := range overlays {
		overlay := filepath.Base(dir)
		t.Run(overlay, func(t *testing.T) {
			renamed, err := install.Render(filepath.Join(apiserver.Root(t), "test", "manifests", dir))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(text(t, render(t, overlay)), install.Namespace, "platform-portico")
			if diff := cmp.Diff(want, text(t, renamed)); diff != "" {
				t.Errorf("want another namespace alone; -want, +got:\n%s", diff)
			}
		})
	}
}

// text formats objects as indented JSON, with one field on a line.
func text(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	var out strings.Builder
	for _, object := range objects {
		data, err := json.MarshalIndent(object, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(data, '\n'))
	}
	return out.String()
}
