package reconciler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestPredicates(t *testing.T) {
	other := target(func(t *v1alpha1.KubernetesTarget) { t.Generation = 2 })
	changed := func(before, after *v1alpha1.KubernetesTarget) bool { return before.Generation != after.Generation }
	cases := map[string]struct {
		reason                                 string
		create, update, same, foreign, deleted bool
	}{
		"Updated":     {reason: "Updates are selected, and all other events pass.", create: true, update: true, foreign: true, deleted: true},
		"UpdatedOnly": {reason: "Only selected updates pass.", update: true, foreign: true},
		"Deleted":     {reason: "Only deletions pass.", deleted: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Deleted()
			switch name {
			case "Updated":
				p = Updated(changed)
			case "UpdatedOnly":
				p = UpdatedOnly(changed)
			}
			foreign := &metav1.PartialObjectMetadata{}
			for what, pair := range map[string][2]bool{
				"create":  {tc.create, p.Create(event.CreateEvent{Object: other})},
				"update":  {tc.update, p.Update(event.UpdateEvent{ObjectOld: target(), ObjectNew: other})},
				"same":    {tc.same, p.Update(event.UpdateEvent{ObjectOld: other, ObjectNew: other})},
				"foreign": {tc.foreign, p.Update(event.UpdateEvent{ObjectOld: foreign, ObjectNew: foreign})},
				"deleted": {tc.deleted, p.Delete(event.DeleteEvent{Object: other})},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: passes %t, want %t: %s", what, pair[1], pair[0], tc.reason)
				}
			}
		})
	}
}

func TestIntentChanged(t *testing.T) {
	now := metav1.Now()
	cases := map[string]struct {
		change func(*v1alpha1.KubernetesTarget)
		want   bool
	}{
		"Nothing":    {change: func(*v1alpha1.KubernetesTarget) {}},
		"Status":     {change: setReady},
		"Generation": {change: func(t *v1alpha1.KubernetesTarget) { t.Generation = 2 }, want: true},
		"Labels":     {change: func(t *v1alpha1.KubernetesTarget) { t.Labels = map[string]string{"env": "prod"} }, want: true},
		"Annotation": {change: func(t *v1alpha1.KubernetesTarget) { t.Annotations = map[string]string{"note": "x"} }, want: true},
		"Deletion":   {change: func(t *v1alpha1.KubernetesTarget) { t.DeletionTimestamp = &now }, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IntentChanged(target(), target(tc.change)); got != tc.want {
				t.Errorf("changed = %t, want %t", got, tc.want)
			}
		})
	}
	if AnnotationsChanged(target(), target(cases["Annotation"].change), "other") || !AnnotationsChanged(target(), target(cases["Annotation"].change), "other", "note") {
		t.Error("want the named annotations compared, and no other")
	}
}
