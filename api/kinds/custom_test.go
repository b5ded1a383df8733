package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

var lake = schema.GroupVersionKind{Group: "custom.example.org", Version: "v1", Kind: "Lake"}

func TestCustomRegistry(t *testing.T) {
	if _, known := For(lake); known {
		t.Fatal("the kind is known before its PropagationKind")
	}
	ReplaceCustom([]*Custom{{Served: lake, Plural: "lakes"}})
	t.Cleanup(func() { ReplaceCustom(nil) })
	for name, tc := range map[string]struct {
		reason string
		gvk    schema.GroupVersionKind
		want   bool
	}{
		"Served":       {reason: "The served version is known.", gvk: lake, want: true},
		"OtherVersion": {reason: "A user may write another version.", gvk: lake.GroupKind().WithVersion("v2"), want: true},
		"OtherGroup":   {reason: "Another group may have a kind of that name.", gvk: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Lake"}},
		"BuiltIn":      {reason: "The native kinds remain.", gvk: Deployment{}.GroupVersionKind(), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			kind, known := For(tc.gvk)
			if known != tc.want || known && kind.GroupVersionKind() != tc.gvk {
				t.Errorf("%s Got %v, %v", tc.reason, kind, known)
			}
		})
	}
	if !IsRegistered(lake.GroupKind()) || IsRegistered(schema.GroupKind{Group: "example.org", Kind: "Lake"}) {
		t.Error("IsRegistered and For differ")
	}
	controlled := New(&Custom{Served: lake})
	controlled.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
	if !IsRemote(controlled) {
		t.Error("an object with the label is not remote")
	}
	controlled.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "a", UID: "1", Controller: new(true)}})
	if IsRemote(controlled) {
		t.Error("an object that has a controller is remote: the controller would make another one on the target")
	}
}

func TestCustomReflect(t *testing.T) {
	problem := metav1.Condition{Type: v1alpha1.Synced, Status: metav1.ConditionFalse, Reason: "Refused", Message: "no"}
	status := func(fields ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i < len(fields); i += 2 {
			out[fields[i].(string)] = fields[i+1]
		}
		return out
	}
	conditions := func(generations ...int64) []any {
		var out []any
		for _, generation := range generations {
			condition := map[string]any{"type": "Ready", "status": "True"}
			if generation > 0 {
				condition["observedGeneration"] = generation
			}
			out = append(out, condition)
		}
		return out
	}
	for name, tc := range map[string]struct {
		reason string
		kind   Custom
		own    map[string]any
		seen   Observation
		want   map[string]any
	}{
		"Whole": {
			reason: "The whole status is shown, with the generation of the hub.",
			seen:   Observation{Status: status("level", int64(3), "observedGeneration", int64(8)), HubGeneration: 5},
			want:   status("level", int64(3), "observedGeneration", int64(5)),
		},
		"Conditions": {
			reason: "A condition with an older generation has an older one of the hub.",
			seen:   Observation{Status: status("conditions", conditions(8, 7, 1)), HubGeneration: 5},
			want:   status("conditions", conditions(5, 4, 0)),
		},
		"Nested": {
			reason: "A Gateway API route reports the generation for each parent.",
			seen:   Observation{Status: status("parents", []any{status("conditions", conditions(2))}), HubGeneration: 6},
			want:   status("parents", []any{status("conditions", conditions(6))}),
		},
		"NotObserved": {
			reason: "Before the first observation no generation is shown.",
			seen:   Observation{Status: status("observedGeneration", int64(1), "level", int64(3))},
			want:   status("level", int64(3)),
		},
		"Paths": {
			reason: "Only the paths of the PropagationKind are shown.",
			kind:   Custom{StatusPaths: [][]string{{"level"}, {"in", "one"}, {"missing"}}},
			seen:   Observation{Status: status("level", int64(3), "in", status("one", "a", "two", "b"), "other", "c")},
			want:   status("level", int64(3), "in", status("one", "a")),
		},
		"NoStatus": {
			reason: "Without a status of the target, the object keeps what the API server gave it.",
			own:    status("level", int64(0)),
			want:   status("level", int64(0)),
		},
		"Problem": {
			reason: "A problem is a condition.",
			seen:   Observation{Status: status("level", int64(3)), Problems: []metav1.Condition{problem}},
			want: status("level", int64(3), "conditions", []any{map[string]any{
				"type": v1alpha1.Synced, "status": "False", "reason": "Refused", "message": "no", "lastTransitionTime": rfc3339(problem.LastTransitionTime)}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			native := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(6)}}}
			if tc.own != nil {
				native.Object["status"] = tc.own
			}
			before := native.DeepCopy()
			if diff := cmp.Diff(tc.want, tc.kind.Reflect(native, tc.seen)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, native); diff != "" {
				t.Errorf("the native object changed:\n%s", diff)
			}
		})
	}
}

func TestCustomObservedGeneration(t *testing.T) {
	ReplaceCustom([]*Custom{{Served: lake, Plural: "lakes"}})
	t.Cleanup(func() { ReplaceCustom(nil) })
	remote := func(generation int64, status map[string]any) *unstructured.Unstructured {
		out := New(&Custom{Served: lake})
		out.SetGeneration(generation)
		out.SetAnnotations(map[string]string{v1alpha1.HubGenerationAnnotation: "5"})
		if status != nil {
			out.Object["status"] = status
		}
		return out
	}
	condition := func(generation int64) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "observedGeneration": generation}}}
	}
	for name, tc := range map[string]struct {
		reason string
		remote *unstructured.Unstructured
		want   int64
	}{
		"NoneReported": {reason: "A controller that reports no generation is not waited for.", remote: remote(2, nil), want: 5},
		"Behind":       {reason: "The status is of an older generation.", remote: remote(2, map[string]any{"observedGeneration": int64(1)})},
		"Current":      {reason: "The status is of this generation.", remote: remote(2, map[string]any{"observedGeneration": int64(2)}), want: 5},
		"Condition":    {reason: "A condition reports the generation.", remote: remote(2, condition(2)), want: 5},
		"OldCondition": {reason: "A condition is of an older generation.", remote: remote(2, condition(1))},
	} {
		t.Run(name, func(t *testing.T) {
			resource := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.HubGenerationAnnotation: "5"}}
			if got := ObservedHubGeneration(resource, resource, tc.remote); got != tc.want {
				t.Errorf("%s Got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestResourceNameOf(t *testing.T) {
	for want, kind := range map[string]schema.GroupKind{
		"web-deployment":              Deployment{}.GroupVersionKind().GroupKind(),
		"web-service":                 Service{}.GroupVersionKind().GroupKind(),
		"web-service.serving.knative": {Group: "serving.knative", Kind: "Service"},
	} {
		if got := ResourceNameOf(kind, "web"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
