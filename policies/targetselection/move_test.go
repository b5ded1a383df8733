package targetselection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func on(target, leaving string) *v1alpha1.KubernetesApplicationResource {
	r := &v1alpha1.KubernetesApplicationResource{}
	if target != "" {
		r.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	}
	if leaving != "" {
		r.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: leaving}
	}
	return r
}

func TestRelocate(t *testing.T) {
	cases := map[string]struct {
		reason   string
		resource *v1alpha1.KubernetesApplicationResource
		to       string
		want     *v1alpha1.KubernetesApplicationResource // nil if nothing changes
	}{
		"First":    {reason: "What runs nowhere leaves nothing.", resource: on("", ""), to: "a", want: on("a", "")},
		"There":    {reason: "What is there need not move.", resource: on("a", ""), to: "a"},
		"Moves":    {reason: "What moves is known to be on both.", resource: on("a", ""), to: "b", want: on("b", "a")},
		"UnderWay": {reason: "The same move is not another one.", resource: on("b", "a"), to: "b"},
		"Back":     {reason: "It can turn back on the way, and leaves what it went to.", resource: on("b", "a"), to: "a", want: on("a", "b")},
		"Third":    {reason: "It would forget that something of it is on the first.", resource: on("b", "a"), to: "c"},
		"Released": {reason: "The one it went to was released; what it left it still leaves.", resource: on("", "a"), to: "c", want: on("c", "a")},
		"Returns":  {reason: "And when that one is chosen, it has nothing to leave.", resource: on("", "a"), to: "a", want: on("a", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, changes := tc.want, tc.want != nil
			if !changes {
				want = tc.resource.DeepCopy()
			}
			if got := SetTarget(tc.resource, tc.to); got != changes {
				t.Errorf("%s: changed: %v, want %v", tc.reason, got, changes)
			}
			if diff := cmp.Diff(want, tc.resource); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLeaving(t *testing.T) {
	targets := make([]v1alpha1.KubernetesTarget, 3)
	for i, name := range []string{"a", "b", "c"} {
		targets[i].Name = name
	}
	gone := on("b", "a")
	gone.DeletionTimestamp = &metav1.Time{}
	const wait = "has to wait until all resources have left a"
	cases := map[string]struct {
		reason  string
		from    string
		members []v1alpha1.KubernetesApplicationResource
		want    map[string]string
	}{
		"Settled":  {reason: "Any other will do.", from: "a", members: []v1alpha1.KubernetesApplicationResource{*on("a", "")}, want: map[string]string{"a": "is the target to leave"}},
		"UnderWay": {reason: "Only the way back is open.", from: "b", members: []v1alpha1.KubernetesApplicationResource{*on("b", ""), *on("b", "a")}, want: map[string]string{"b": "is the target to leave", "c": wait}},
		"Deleted":  {reason: "What is being deleted goes by itself.", from: "b", members: []v1alpha1.KubernetesApplicationResource{*gone}, want: map[string]string{"b": "is the target to leave"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, MoveExclusions(tc.from, targets, tc.members)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
