package propagation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPatience(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]struct {
		reason  string
		reverts []time.Duration // before now
		want    time.Duration
	}{
		"Never": {
			reason: "The first change is changed back at once.",
		},
		"Once": {
			reason:  "So is a second, soon after.",
			reverts: []time.Duration{time.Millisecond},
		},
		"Twice": {
			reason:  "Then somebody is at it, and is met less often.",
			reverts: []time.Duration{2 * time.Second, 250 * time.Millisecond},
			want:    750 * time.Millisecond,
		},
		"Again": {
			reason:  "The longer it goes on, the less.",
			reverts: []time.Duration{9 * time.Second, 8 * time.Second, 6 * time.Second, 0},
			want:    4 * time.Second,
		},
		"Waited": {
			reason:  "What was waited for is over.",
			reverts: []time.Duration{3 * time.Second, time.Second},
		},
		"Peace": {
			reason:  "A quarrel of long ago is forgotten.",
			reverts: []time.Duration{time.Hour, time.Hour, time.Hour, time.Second},
		},
		"Endless": {
			reason:  "There is a limit.",
			reverts: make([]time.Duration, 100),
			want:    quarrelMost,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var a applied
			for _, before := range tc.reverts {
				a.revert(now.Add(-before))
			}
			if got := a.patience(now); got != tc.want {
				t.Errorf("patience = %s, want %s: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestValues(t *testing.T) {
	object := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "settings", "resourceVersion": value + "1"},
			"data":     map[string]any{"color": value},
		}}
	}
	paths := []string{".data.color"}
	if values(object("blue"), nil) != "" {
		t.Error("where nothing differs there is nothing to tell apart")
	}
	if values(object("blue"), paths) == values(object("red"), paths) {
		t.Error("a kind without a generation that drifted again at the same path went unseen")
	}
	later := object("blue")
	later.SetResourceVersion("2")
	if values(object("blue"), paths) != values(later, paths) {
		t.Error("a write that changed nothing else was taken for drift")
	}
}
