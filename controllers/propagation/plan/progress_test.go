package plan

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestIsProgress(t *testing.T) {
	type status = v1alpha1.KubernetesApplicationResourceStatus
	with := func(kind string, is metav1.ConditionStatus, reason, message string) func(*status) {
		return func(s *status) {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message})
		}
	}
	applied, progressing := with(v1alpha1.Synced, metav1.ConditionTrue, v1alpha1.ReasonApplied, "applied"), with(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, "0 of 2")
	counted := func(s *status) {
		s.Remote, s.ObservedHubGeneration = &apiextensionsv1.JSON{Raw: []byte(`{"replicas":1}`)}, 1
	}
	for name, tc := range map[string]struct {
		reason        string
		before, after []func(*status)
		want          bool
	}{
		"Counts":   {reason: "Counts of a rollout are progress.", before: []func(*status){applied, progressing}, after: []func(*status){applied, progressing, counted}, want: true},
		"Same":     {reason: "Equal statuses are no progress.", before: []func(*status){applied, progressing}},
		"Message":  {reason: "Another message is progress.", before: []func(*status){applied, progressing}, after: []func(*status){applied, with(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, "1 of 2")}, want: true},
		"First":    {reason: "The first status is no progress.", after: []func(*status){applied, progressing}},
		"Ready":    {reason: "The object became ready.", before: []func(*status){applied, progressing}, after: []func(*status){applied, with(v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonAvailable, "2 of 2"), counted}},
		"Failed":   {reason: "The object failed.", before: []func(*status){applied, progressing}, after: []func(*status){applied, with(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonFailed, "stuck"), counted}},
		"WasReady": {reason: "The object was ready before.", before: []func(*status){applied, with(v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonAvailable, "2 of 2")}, after: []func(*status){applied, progressing}},
		"Refused":  {reason: "The object was not applied.", before: []func(*status){applied, progressing}, after: []func(*status){with(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonRefused, "no"), progressing, counted}},
		"State":    {reason: "The state changed.", before: []func(*status){applied, progressing}, after: []func(*status){applied, progressing, func(s *status) { s.State = v1alpha1.StateSubmitted }}},
	} {
		var before, after status
		for _, edit := range tc.before {
			edit(&before)
		}
		after = *before.DeepCopy()
		for _, edit := range tc.after {
			edit(&after)
		}
		if got := IsProgress(&before, &after); got != tc.want {
			t.Errorf("%s: progress = %t, want %t: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestIsStarting(t *testing.T) {
	status := func(conditions ...metav1.Condition) *v1alpha1.KubernetesApplicationResourceStatus {
		return &v1alpha1.KubernetesApplicationResourceStatus{Conditions: conditions}
	}
	synced := func(is metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.Synced, Status: is, Reason: reason}
	}
	waits := status(synced(metav1.ConditionFalse, v1alpha1.ReasonApplying))
	for name, tc := range map[string]struct {
		reason        string
		before, after *v1alpha1.KubernetesApplicationResourceStatus
		want          bool
	}{
		"Waits":   {reason: "A new object waits for its Secret, which is being applied.", before: status(), after: waits, want: true},
		"Missing": {reason: "A new object waits for a Secret that does not exist.", before: status(), after: status(synced(metav1.ConditionFalse, v1alpha1.ReasonDependencyMissing))},
		"Applied": {reason: "A new object was applied.", before: status(), after: status(synced(metav1.ConditionTrue, v1alpha1.ReasonApplied))},
		"Later":   {reason: "An object that was reported waits again.", before: waits, after: waits},
		"Unknown": {reason: "The target was not read yet.", before: status(), after: status()},
	} {
		if got := IsStarting(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: starting = %t, want %t: %s", name, got, tc.want, tc.reason)
		}
	}
}
