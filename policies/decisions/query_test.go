package decisions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/targetselection"
)

func TestRestrict(t *testing.T) {
	targets := []v1alpha1.KubernetesTarget{{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}, {ObjectMeta: metav1.ObjectMeta{Name: "us"}}}
	q := targetselection.Query{Targets: targets, Excluded: map[string]string{"eu": "is the target to leave"}}
	got := Restrict(q, &engine.Decision{Excluded: []engine.Finding{{Policy: "p", Code: "A", Message: "no", Target: "us"}}, Scores: map[string]float64{"us": 3}})
	if len(got.Excluded) != 2 || got.Excluded["eu"] != "is the target to leave" || got.Scores["us"] != 3 {
		t.Errorf("%+v", got)
	}
	got = Restrict(q, &engine.Decision{Denied: []engine.Finding{{Policy: "p", Code: "A", Message: "no"}}})
	if diff := cmp.Diff(map[string]string{"eu": "is the target to leave", "us": "is denied by policy p: A: no"}, got.Excluded); diff != "" {
		t.Error(diff)
	}
	if len(q.Excluded) != 1 {
		t.Errorf("the query was changed: %v", q.Excluded)
	}
}
