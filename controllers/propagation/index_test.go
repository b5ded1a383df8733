package propagation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
)

func TestIndexDependencies(t *testing.T) {
	resource := contentResource(t)
	resource.Spec.Dependencies = []v1alpha1.Dependency{{Kind: "ConfigMap", Name: "a", Native: true}}
	if diff := cmp.Diff([]string{"ConfigMap/a", "Secret/sql"}, IndexDependencies(resource)); diff != "" {
		t.Errorf("index keys (-want +got):\n%s", diff)
	}
	if got := plan.NewDependency(resource, resource.Spec.Dependencies[0]).CopyName; got != "a" {
		t.Errorf("a Secret with a resource of its own is indexed as %s", got)
	}
}
