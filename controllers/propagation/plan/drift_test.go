package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestDrifts(t *testing.T) {
	owners := FieldOwnersOf(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": []any{
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
		"None":     {reason: "A field that another manager added is no drift.", want: of{"spec": of{"replicas": int64(2)}}, have: of{"spec": of{"replicas": 2.0, "paused": true}}},
		"Changed":  {reason: "A drift has the observed value, the desired value and the manager.", want: of{"spec": of{"replicas": int64(2)}}, have: of{"spec": of{"replicas": int64(5)}}, drifts: []v1alpha1.Drift{{Path: ".spec.replicas", Desired: "2", Observed: "5", Manager: "kubectl-edit"}}},
		"Item":     {reason: "An item is named by its key.", want: of{"spec": of{"containers": containers("a")}}, have: of{"spec": of{"containers": containers("b")}}, drifts: []v1alpha1.Drift{{Path: ".spec.containers[name=web].image", Desired: "a", Observed: "b", Manager: "kubectl-edit"}}},
		"Argument": {reason: "An argument after a password flag is redacted.", want: of{"spec": of{"args": []any{"--password", "hunter2"}}}, have: of{"spec": of{"args": []any{"--password", "hunter3"}}}, drifts: []v1alpha1.Drift{{Path: ".spec.args", Desired: `["--password","\u003credacted\u003e"]`, Observed: `["--password","\u003credacted\u003e"]`, Manager: "kubectl-edit"}}},
		"Part":     {reason: "The manager of a list without keys is the manager of its items.", want: of{"spec": of{"args": []any{"a"}}}, have: of{"spec": of{"args": []any{"b"}}}, drifts: []v1alpha1.Drift{{Path: ".spec.args", Desired: `["a"]`, Observed: `["b"]`, Manager: "kubectl-edit"}}},
		"Removed":  {reason: "A removed field has no value. It differs from an empty text.", want: of{"data": of{"a": ""}}, have: of{"data": of{}}, drifts: []v1alpha1.Drift{{Path: ".data.a", Desired: `""`}}},
		"Secret":   {reason: "The values of a Secret are redacted.", want: of{"data": of{"a": "eA=="}}, have: of{"data": of{"a": "eQ=="}}, secret: true, drifts: []v1alpha1.Drift{{Path: ".data.a", Desired: "<redacted>", Observed: "<redacted>"}}},
		"Whole":    {reason: "A value that is not a text is written as JSON and truncated.", want: of{"a": []any{strings.Repeat("x", 300)}}, have: of{}, drifts: []v1alpha1.Drift{{Path: ".a", Desired: `["` + strings.Repeat("x", 251) + "..."}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.drifts, DriftsOf(Differences(tc.want, tc.have), owners, tc.secret)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
