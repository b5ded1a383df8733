package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestCrossplane leaves out the claim's definition where somebody else brings
// it, and nothing else.
func TestCrossplane(t *testing.T) {
	const claims = "CustomResourceDefinition/kubernetesclusters.compute.crossplane.io"
	list := func(overlay string) []string {
		var out []string
		for _, object := range render(t, overlay) {
			out = append(out, object.GetKind()+"/"+object.GetName())
		}
		return out
	}
	if diff := cmp.Diff(list("default"), append(list("crossplane"), claims), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("in the default (-), and in crossplane with the claim's definition (+):\n%s", diff)
	}
}
