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
		"First":    {reason: "An object without a target leaves none.", resource: on("", ""), to: "a", want: on("a", "")},
		"There":    {reason: "An object on the target does not move.", resource: on("a", ""), to: "a"},
		"Moves":    {reason: "An object that moves is on both targets.", resource: on("a", ""), to: "b", want: on("b", "a")},
		"UnderWay": {reason: "The same target again changes nothing.", resource: on("b", "a"), to: "b"},
		"Back":     {reason: "An object can turn back, and then leaves the target it moved to.", resource: on("b", "a"), to: "a", want: on("a", "b")},
		"Third":    {reason: "A third target would make the object forget the first.", resource: on("b", "a"), to: "c"},
		"Released": {reason: "After the release of its target an object still leaves the earlier one.", resource: on("", "a"), to: "c", want: on("c", "a")},
		"Returns":  {reason: "If the earlier target is selected again, the object leaves none.", resource: on("", "a"), to: "a", want: on("a", "")},
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
		"Settled":  {reason: "An object that does not move may go to any other target.", from: "a", members: []v1alpha1.KubernetesApplicationResource{*on("a", "")}, want: map[string]string{"a": "is the target to leave"}},
		"UnderWay": {reason: "An object that moves can only turn back.", from: "b", members: []v1alpha1.KubernetesApplicationResource{*on("b", ""), *on("b", "a")}, want: map[string]string{"b": "is the target to leave", "c": wait}},
		"Deleted":  {reason: "An object that is being deleted does not count.", from: "b", members: []v1alpha1.KubernetesApplicationResource{*gone}, want: map[string]string{"b": "is the target to leave"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, MoveExclusions(tc.from, targets, tc.members)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
