package propagation

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
)

// TestReportDrift reports the drift of several reconciles in sequence.
func TestReportDrift(t *testing.T) {
	at := func(path, observed string) v1alpha1.Drift {
		return v1alpha1.Drift{Path: path, Observed: observed, FirstSeenTime: metav1.NewTime(time.Unix(1, 0))}
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	var events []string
	step := func(policy v1alpha1.DriftPolicy, found ...v1alpha1.Drift) {
		s := &scope.Scope{Target: types.NamespacedName{Name: "eu-1"}, DriftPolicy: policy, Resource: resource, Before: resource.DeepCopy(),
			Desired: &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "web"}}}}
		s.ReportDrift(found)
		line := "-"
		if len(resource.Status.Conditions) > 0 {
			line = string(resource.Status.Conditions[0].Status)
		}
		for _, e := range s.Events {
			line += " " + e.Reason + ": " + e.Note
		}
		events = append(events, line)
	}
	step(v1alpha1.DriftReport)
	step(v1alpha1.DriftReport, at(".spec.replicas", "5"))
	step(v1alpha1.DriftReport, at(".spec.replicas", "5"))
	step(v1alpha1.DriftReport, at(".spec.paused", "true"), at(".spec.replicas", "5"))
	step(v1alpha1.DriftReport, at(".spec.paused", "true"), at(".spec.replicas", "6"))
	step(v1alpha1.DriftReport, at(".spec.replicas", "6"))
	step(v1alpha1.DriftReport)
	step(v1alpha1.DriftReport, at(".spec.replicas", "5"))
	step(v1alpha1.DriftCorrect)
	want := []string{
		"False",
		"True DriftFound: changed on target eu-1, and kept: .spec.replicas",
		"True",
		"True DriftFound: changed on target eu-1, and kept: .spec.paused",
		"True DriftFound: changed on target eu-1, and kept: .spec.replicas",
		"True",
		"False DriftEnded: Deployment web on target eu-1 has the applied fields again",
		"True DriftFound: changed on target eu-1, and kept: .spec.replicas",
		"-",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("each change is reported once (-want +got):\n%s", diff)
	}
	if len(resource.Status.Drift) > 0 {
		t.Error("a corrected object is listed as drifted")
	}
	step(v1alpha1.DriftReport, slices.Repeat([]v1alpha1.Drift{at(".a", "b")}, 30)...)
	if len(resource.Status.Drift) != plan.MaxDrifts {
		t.Errorf("%d fields are listed", len(resource.Status.Drift))
	}
}

func TestDeletedThere(t *testing.T) {
	const current, old = 3, 2
	cases := map[string]struct {
		reason  string
		policy  v1alpha1.DriftPolicy
		target  string
		synced  metav1.Condition
		drifted metav1.Condition
		want    bool
	}{
		"Applied":   {reason: "A missing object was deleted on the target if this generation was applied.", synced: metav1.Condition{Status: "True", ObservedGeneration: current}, want: true},
		"Reported":  {reason: "A reported deletion stays reported.", synced: metav1.Condition{Status: "False", ObservedGeneration: current}, drifted: metav1.Condition{Status: "True", Reason: v1alpha1.ReasonDeletedOnTarget, ObservedGeneration: current}, want: true},
		"Changed":   {reason: "A new generation creates the object.", synced: metav1.Condition{Status: "True", ObservedGeneration: old}},
		"Corrected": {reason: "With drift policy Correct the object is created again.", policy: v1alpha1.DriftCorrect, synced: metav1.Condition{Status: "True", ObservedGeneration: current}},
		"Elsewhere": {reason: "The object was applied on another target, not on this one.", target: "eu-2", synced: metav1.Condition{Status: "True", ObservedGeneration: current}},
		"NotYet":    {reason: "The object was not deleted if this generation was not applied.", synced: metav1.Condition{Status: "False", ObservedGeneration: current}, drifted: metav1.Condition{Status: "True", Reason: v1alpha1.ReasonChangedOnTarget, ObservedGeneration: old}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Generation: current}}
			resource.Status.Target = "eu-1"
			tc.synced.Type, tc.drifted.Type = v1alpha1.Synced, v1alpha1.Drifted
			resource.Status.Conditions = []metav1.Condition{tc.synced, tc.drifted}
			s := &scope.Scope{Resource: resource, Before: resource, Target: types.NamespacedName{Name: "eu-1"}, DriftPolicy: v1alpha1.DriftReport}
			if tc.policy != "" {
				s.DriftPolicy = tc.policy
			}
			if tc.target != "" {
				s.Target.Name = tc.target
			}
			if got := s.DeletedOnTarget(); got != tc.want {
				t.Errorf("%s: deleted there is %v", tc.reason, got)
			}
		})
	}
}
