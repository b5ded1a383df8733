package propagation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestAppendLeftObject(t *testing.T) {
	left := func(names ...string) (out []v1alpha1.OrphanedObject) {
		for _, name := range names {
			out = append(out, v1alpha1.OrphanedObject{Object: name})
		}
		return out
	}
	if diff := cmp.Diff(left("b", "a"), appendLeftObject(left("a", "b"), left("a")[0])); diff != "" {
		t.Errorf("want each line once, the last one last (-want +got):\n%s", diff)
	}
	var many []v1alpha1.OrphanedObject
	for i := range maxLeftObjects {
		many = append(many, left(strings.Repeat("x", i+1))...)
	}
	got := appendLeftObject(many, left("new")[0])
	if len(got) != maxLeftObjects || got[0].Object != "xx" || got[maxLeftObjects-1].Object != "new" {
		t.Errorf("%d are listed, from %s to %s", len(got), got[0].Object, got[len(got)-1].Object)
	}
}
