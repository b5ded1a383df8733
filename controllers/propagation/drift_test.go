package propagation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestDrifts(t *testing.T) {
	owners := claims(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": []any{
		map[string]any{"manager": "kubectl-edit", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{
			"f:spec": map[string]any{"f:replicas": map[string]any{}, "f:args": map[string]any{},
				"f:containers": map[string]any{`k:{"name":"web"}`: map[string]any{"f:image": map[string]any{}}}},
		}},
	}}}}, []string{".spec.replicas", ".spec.args", `.spec.containers[name="web"].image`})
	type of = map[string]any
	containers := func(image string) []any { return []any{of{"name": "web", "image": image}} }
	cases := map[string]struct {
		reason     string
		want, have of
		secret     bool
		drifts     []v1alpha1.Drift
	}{
		"None":    {reason: "What others add is theirs.", want: of{"spec": of{"replicas": int64(2)}}, have: of{"spec": of{"replicas": 2.0, "paused": true}}},
		"Changed": {reason: "What it is, what it should be, and who did it.", want: of{"spec": of{"replicas": int64(2)}}, have: of{"spec": of{"replicas": int64(5)}}, drifts: []v1alpha1.Drift{{Path: ".spec.replicas", Desired: "2", Observed: "5", Manager: "kubectl-edit"}}},
		"Item":    {reason: "An item is named by its key.", want: of{"spec": of{"containers": containers("a")}}, have: of{"spec": of{"containers": containers("b")}}, drifts: []v1alpha1.Drift{{Path: ".spec.containers[name=web].image", Desired: "a", Observed: "b", Manager: "kubectl-edit"}}},
		"Part":    {reason: "Who owns a list that has no keys owns what is in it.", want: of{"spec": of{"args": []any{"a"}}}, have: of{"spec": of{"args": []any{"b"}}}, drifts: []v1alpha1.Drift{{Path: ".spec.args[0]", Desired: "a", Observed: "b", Manager: "kubectl-edit"}}},
		"Removed": {reason: "What was removed has no value, which is not the same as an empty one.", want: of{"data": of{"a": ""}}, have: of{"data": of{}}, drifts: []v1alpha1.Drift{{Path: ".data.a", Desired: `""`}}},
		"Secret":  {reason: "Nothing of a Secret is told.", want: of{"data": of{"a": "eA=="}}, have: of{"data": of{"a": "eQ=="}}, secret: true, drifts: []v1alpha1.Drift{{Path: ".data.a", Desired: "<redacted>", Observed: "<redacted>"}}},
		"Whole":   {reason: "A value that is no word is written as JSON, and cut.", want: of{"a": []any{strings.Repeat("x", 300)}}, have: of{}, drifts: []v1alpha1.Drift{{Path: ".a", Desired: `["` + strings.Repeat("x", 251) + "..."}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.drifts, drifts(differing(tc.want, tc.have), owners, tc.secret)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTellDrift tells a story: a step is what is found, then what is told of it.
func TestTellDrift(t *testing.T) {
	at := func(path, observed string) v1alpha1.Drift {
		return v1alpha1.Drift{Path: path, Observed: observed, FirstSeenTime: metav1.NewTime(time.Unix(1, 0))}
	}
	c := &Controller{}
	resource := &v1alpha1.KubernetesApplicationResource{}
	var story []string
	step := func(policy v1alpha1.DriftPolicy, found ...v1alpha1.Drift) {
		j := &journey{target: types.NamespacedName{Name: "eu-1"}, drift: policy, resource: resource, before: resource.DeepCopy(),
			desired: &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "web"}}}}
		c.tellDrift(j, found)
		line := "-"
		if len(resource.Status.Conditions) > 0 {
			line = string(resource.Status.Conditions[0].Status)
		}
		for _, e := range j.story {
			line += " " + e.Reason + ": " + e.Note
		}
		story = append(story, line)
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
		"True DriftFound: changed on target eu-1, and left so: .spec.replicas",
		"True",
		"True DriftFound: changed on target eu-1, and left so: .spec.paused",
		"True DriftFound: changed on target eu-1, and left so: .spec.replicas",
		"True",
		"False DriftEnded: Deployment web is on target eu-1 as it was applied again",
		"True DriftFound: changed on target eu-1, and left so: .spec.replicas",
		"-",
	}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("each change is told once (-want +got):\n%s", diff)
	}
	if len(resource.Status.Drift) > 0 {
		t.Error("what is corrected is not listed")
	}
	step(v1alpha1.DriftReport, slices.Repeat([]v1alpha1.Drift{at(".a", "b")}, 30)...)
	if len(resource.Status.Drift) != mostDrifts {
		t.Errorf("%d fields are listed", len(resource.Status.Drift))
	}
}

func TestDeletedThere(t *testing.T) {
	const current, older = 3, 2
	cases := map[string]struct {
		reason string
		policy v1alpha1.DriftPolicy
		target string
		synced metav1.Condition
		told   metav1.Condition
		want   bool
	}{
		"Applied":   {reason: "What was applied as it is wanted, and is not there, was deleted.", synced: metav1.Condition{Status: "True", ObservedGeneration: current}, want: true},
		"Told":      {reason: "It stays deleted once that was told.", synced: metav1.Condition{Status: "False", ObservedGeneration: current}, told: metav1.Condition{Status: "True", Reason: v1alpha1.ReasonDeletedOnTarget, ObservedGeneration: current}, want: true},
		"Changed":   {reason: "What is wanted otherwise now is made.", synced: metav1.Condition{Status: "True", ObservedGeneration: older}},
		"Corrected": {reason: "What is corrected is made again.", policy: v1alpha1.DriftCorrect, synced: metav1.Condition{Status: "True", ObservedGeneration: current}},
		"Elsewhere": {reason: "It moved here, and was never here.", target: "eu-2", synced: metav1.Condition{Status: "True", ObservedGeneration: current}},
		"NotYet":    {reason: "What could not be applied was not deleted.", synced: metav1.Condition{Status: "False", ObservedGeneration: current}, told: metav1.Condition{Status: "True", Reason: v1alpha1.ReasonChangedOnTarget, ObservedGeneration: older}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Generation: current}}
			resource.Status.Target = "eu-1"
			tc.synced.Type, tc.told.Type = v1alpha1.Synced, v1alpha1.Drifted
			resource.Status.Conditions = []metav1.Condition{tc.synced, tc.told}
			j := &journey{resource: resource, before: resource, target: types.NamespacedName{Name: "eu-1"}, drift: v1alpha1.DriftReport}
			if tc.policy != "" {
				j.drift = tc.policy
			}
			if tc.target != "" {
				j.target.Name = tc.target
			}
			if got := j.deletedThere(); got != tc.want {
				t.Errorf("%s: deleted there is %v", tc.reason, got)
			}
		})
	}
}

func TestDriftedOn(t *testing.T) {
	resource := func(target, status string) v1alpha1.KubernetesApplicationResource {
		out := v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
		out.Status.Target = target
		out.Status.Conditions = []metav1.Condition{{Type: v1alpha1.Drifted, Status: metav1.ConditionStatus(status)}}
		return out
	}
	got := driftedOn([]v1alpha1.KubernetesApplicationResource{resource("eu-1", "True"), resource("eu-1", "True"), resource("eu-1", "False"), resource("eu-2", "True"), {}})
	want := map[types.NamespacedName]int{{Namespace: "shop", Name: "eu-1"}: 2, {Namespace: "shop", Name: "eu-2"}: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("those that differ are counted (-want +got):\n%s", diff)
	}
}
