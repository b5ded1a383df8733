package memory

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestProgress: when the last resource of an application is ready on its new target,
// all resources that leave a target are returned once.
func TestProgress(t *testing.T) {
	for _, count := range []int{1, 2, 100, 2000} {
		var p progress
		shop := types.NamespacedName{Namespace: "team-a", Name: "shop"}
		recorded := 0
		set := func(resource *v1alpha1.KubernetesApplicationResource) { recorded += len(p.Set(resource)) }
		for i := range count {
			set(member(fmt.Sprint(i), "", "old", "old"))
		}
		if !p.AllReadyOn(shop, "old") || recorded != 0 {
			t.Fatalf("of %d, all are on the old target, and nothing moves: told %d", count, recorded)
		}
		for i := range count {
			set(member(fmt.Sprint(i), "old", "new", "old"))
		}
		for i := range count {
			if p.AllReadyOn(shop, "new") {
				t.Fatalf("arrived with %d of %d", i, count)
			}
			set(member(fmt.Sprint(i), "old", "new", "new"))
		}
		if !p.AllReadyOn(shop, "new") || recorded != count {
			t.Fatalf("recorded %d of %d", recorded, count)
		}
		for i := range count {
			set(member(fmt.Sprint(i), "", "new", "new"))
		}
		if recorded != count {
			t.Errorf("of %d, told %d, each of them more than once", count, recorded)
		}
		for i := range count {
			p.Delete(types.NamespacedName{Namespace: "team-a", Name: fmt.Sprint(i)})
		}
		if len(p.resources)+len(p.applications) != 0 {
			t.Errorf("left: %v %v", p.resources, p.applications)
		}
	}
}

func TestProgressWithoutTheLast(t *testing.T) {
	var p progress
	p.Set(member("web", "old", "new", "new"))
	p.Set(member("db", "old", "new", "old"))
	recorded := p.Delete(types.NamespacedName{Namespace: "team-a", Name: "db"})
	if got := slices.Collect(maps.Keys(recorded)); !slices.Equal(got, []string{"web"}) || !slices.Equal(recorded["web"], []string{"new", "old"}) {
		t.Errorf("the wait is over, and recorded was %v", recorded)
	}
	elsewhere := member("web", "old", "new", "new")
	elsewhere.Labels[v1alpha1.ApplicationLabel] = "blog"
	p.Set(elsewhere)
	if !p.AllReadyOn(types.NamespacedName{Namespace: "team-a", Name: "blog"}, "new") || len(p.applications) != 1 {
		t.Errorf("it belongs to another application now: %v", p.applications)
	}
}

// member returns a resource of application shop that moves. shown is the target in its
// status.
func member(name, from, to, shown string) *v1alpha1.KubernetesApplicationResource {
	out := &v1alpha1.KubernetesApplicationResource{}
	out.Namespace, out.Name, out.Labels = "team-a", name, map[string]string{v1alpha1.ApplicationLabel: "shop"}
	if to != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: to}
	}
	if from != "" {
		out.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: from}
	}
	out.Status.Target = shown
	return out
}
