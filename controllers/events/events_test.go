package events

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestOfConditions(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	one := func(kind string, status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{condition(kind, status, reason, message)}
	}
	scheduled := one(v1alpha1.Scheduled, yes, v1alpha1.ReasonScheduled, "runs on eu-1")
	refused := one(v1alpha1.Synced, no, v1alpha1.ReasonRefused, "no such namespace")
	away := one(v1alpha1.TargetReachable, no, v1alpha1.ReasonUnreachable, "target eu-1 refuses connections")
	back := one(v1alpha1.TargetReachable, yes, v1alpha1.ReasonReachable, "target eu-1 answers")

	cases := map[string]struct {
		reason        string
		before, after []metav1.Condition
		want          []Event
	}{
		"Nothing":   {reason: "Without conditions there is no event."},
		"Same":      {reason: "An equal condition has no event.", before: refused, after: refused},
		"Gone":      {reason: "A removed condition has no event.", before: refused},
		"Scheduled": {reason: "The event names the target.", after: scheduled, want: []Event{{Reason: v1alpha1.ReasonScheduled, Note: "runs on eu-1"}}},
		"Reworded":  {reason: "Another message of a true condition has no event.", before: one(v1alpha1.Scheduled, yes, "Other", "words"), after: scheduled},
		"Refused":   {reason: "The event has the message of the condition.", after: refused, want: []Event{{Warning: true, Reason: v1alpha1.ReasonRefused, Note: "no such namespace"}}},
		"RefusedOtherwise": {
			reason: "Another message of a false condition is another event.",
			before: refused, after: one(v1alpha1.Synced, no, v1alpha1.ReasonRefused, "image not allowed"),
			want: []Event{{Warning: true, Reason: v1alpha1.ReasonRefused, Note: "image not allowed"}},
		},
		"Applied":      {reason: "A failure that ended has an event.", before: refused, after: one(v1alpha1.Synced, yes, v1alpha1.ReasonApplied, "applied"), want: []Event{{Reason: v1alpha1.ReasonApplied, Note: "applied"}}},
		"Reached":      {reason: "The first connection has no event.", after: back},
		"Connected":    {reason: "A connection after Unknown has no event.", before: one(v1alpha1.TargetReachable, unknown, v1alpha1.ReasonConnecting, "connecting"), after: back},
		"Unreachable":  {reason: "An unreachable target has an event.", before: back, after: away, want: []Event{{Warning: true, Reason: v1alpha1.ReasonUnreachable, Note: "target eu-1 refuses connections"}}},
		"StillAway":    {reason: "An outage has one event, although messages differ from probe to probe.", before: away, after: one(v1alpha1.TargetReachable, no, v1alpha1.ReasonUnreachable, "target eu-1 does not answer in time")},
		"AwayOtherway": {reason: "Another reason is another event.", before: away, after: one(v1alpha1.TargetReachable, no, v1alpha1.ReasonUnauthorized, "token expired"), want: []Event{{Warning: true, Reason: v1alpha1.ReasonUnauthorized, Note: "token expired"}}},
		"Recovered":    {reason: "The end of an outage has an event.", before: away, after: back, want: []Event{{Reason: v1alpha1.EventRecovered, Note: "target eu-1 answers again"}}},
		"OnTheWay": {
			reason: "Transient reasons have no event.",
			after: []metav1.Condition{
				condition(v1alpha1.TargetReachable, no, v1alpha1.ReasonConnecting, ""),
				condition(v1alpha1.Synced, no, v1alpha1.ReasonApplying, ""),
				condition(v1alpha1.Ready, no, v1alpha1.ReasonProgressing, ""),
			},
		},
		"Withdrawing": {reason: "A deletion has no event.", after: []metav1.Condition{condition(v1alpha1.Synced, no, v1alpha1.ReasonWithdrawing, ""), condition(v1alpha1.Ready, no, v1alpha1.ReasonNotScheduled, "")}},
		"Unknown":     {reason: "Unknown has no event.", after: one(v1alpha1.Ready, unknown, v1alpha1.ReasonProgressing, "")},
		"Failed":      {reason: "A failed rollout has an event.", after: one(v1alpha1.Ready, no, v1alpha1.ReasonFailed, "deadline exceeded"), want: []Event{{Warning: true, Reason: v1alpha1.ReasonFailed, Note: "deadline exceeded"}}},
		"OthersTypes": {reason: "Only Portico's conditions have events.", after: one("Progressing", no, "Stuck", "stuck")},
		"Order": {
			reason: "Events have a fixed order.",
			after: []metav1.Condition{
				condition(v1alpha1.Ready, yes, v1alpha1.ReasonAvailable, "ready"),
				condition(v1alpha1.Synced, yes, v1alpha1.ReasonApplied, "applied"),
				condition(v1alpha1.Scheduled, yes, v1alpha1.ReasonScheduled, "runs on eu-1"),
			},
			want: []Event{
				{Reason: v1alpha1.ReasonScheduled, Note: "runs on eu-1"},
				{Reason: v1alpha1.ReasonApplied, Note: "applied"},
				{Reason: v1alpha1.ReasonAvailable, Note: "ready"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, OfConditions(tc.before, tc.after)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOfResource(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	placed := condition(v1alpha1.Scheduled, yes, v1alpha1.ReasonScheduled, "runs on eu-1")
	applied := condition(v1alpha1.Synced, yes, v1alpha1.ReasonApplied, "Deployment web is applied on target eu-1")
	ready := condition(v1alpha1.Ready, yes, v1alpha1.ReasonAvailable, "ready")
	progressing := condition(v1alpha1.Ready, no, v1alpha1.ReasonProgressing, "0 of 1")
	stuck := condition(v1alpha1.Ready, no, v1alpha1.ReasonFailed, "deadline exceeded")
	success := Event{Reason: v1alpha1.ReasonApplied, Note: "application shop: Deployment web is applied on target eu-1"}
	failure := Event{Warning: true, Reason: v1alpha1.ReasonFailed, Note: "deadline exceeded"}
	recovery := Event{Reason: v1alpha1.ReasonAvailable, Note: "ready"}

	type step struct {
		after []metav1.Condition
		want  []Event
	}
	of := func(conditions ...metav1.Condition) []metav1.Condition { return conditions }
	for name, tc := range map[string]struct {
		reason string
		steps  []step
	}{
		"Success":  {reason: "A resource that succeeds has one event.", steps: []step{{of(placed, applied, progressing), []Event{success}}, {of(placed, applied, ready), nil}}},
		"AtOnce":   {reason: "A resource that is ready at once has one event.", steps: []step{{of(placed, applied, ready), []Event{success}}}},
		"Update":   {reason: "An update has no event.", steps: []step{{of(placed, applied, ready), []Event{success}}, {of(placed, applied, progressing), nil}, {of(placed, applied, ready), nil}}},
		"Recovers": {reason: "A failure has an event, and so has the end of the failure.", steps: []step{{of(placed, applied, stuck), []Event{success, failure}}, {of(placed, applied, ready), []Event{recovery}}}},
		"RecoversLater": {reason: "The end of a failure has an event also after another rollout.", steps: []step{
			{of(placed, applied, stuck), []Event{success, failure}}, {of(placed, applied, progressing), nil}, {of(placed, applied, ready), []Event{recovery}},
			{of(placed, applied, progressing), nil}, {of(placed, applied, ready), nil}}},
		"Placed": {reason: "A target that was found after a failure has an event.", steps: []step{
			{of(condition(v1alpha1.Scheduled, no, v1alpha1.ReasonNoMatchingTarget, "none")), []Event{{Warning: true, Reason: v1alpha1.ReasonNoMatchingTarget, Note: "none"}}},
			{of(placed), []Event{{Reason: v1alpha1.ReasonScheduled, Note: "runs on eu-1"}}}}},
		"Refused": {reason: "A refusal has an event, and so has the next apply.", steps: []step{
			{of(condition(v1alpha1.Synced, no, v1alpha1.ReasonRefused, "no")), []Event{{Warning: true, Reason: v1alpha1.ReasonRefused, Note: "no"}}}, {of(applied), []Event{success}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var before []metav1.Condition
			var failed []string
			for i, step := range tc.steps {
				var got []Event
				got, failed = OfResource(before, step.after, "shop", failed)
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("step %d: %s (-want +got):\n%s", i, tc.reason, diff)
				}
				before = step.after
			}
		})
	}
	if got, _ := OfResource(nil, of(applied), "", nil); got[0].Note != applied.Message {
		t.Errorf("without an application the note is %q", got[0].Note)
	}
}

func TestEmit(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	Emit(recorder, &v1alpha1.KubernetesApplicationResource{}, "Propagate",
		Event{Reason: "Applied", Note: "100% of it"}, Event{Warning: true, Reason: "Refused", Note: "%s is not allowed"})
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	want := []string{"Normal Applied 100% of it", "Warning Refused %s is not allowed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want the note as it is, not as a format (-want +got):\n%s", diff)
	}
}

// TestLongNote shortens notes that the API server would reject.
func TestLongNote(t *testing.T) {
	for _, shift := range []string{"", "a", "ab", "abc"} {
		recorder := events.NewFakeRecorder(1)
		Emit(recorder, &v1alpha1.KubernetesApplicationResource{}, "Propagate", Event{Reason: "Refused", Note: shift + strings.Repeat("語é", 400)})
		note := strings.TrimPrefix(<-recorder.Events, "Normal Refused ")
		if len(note) > maxNote || !utf8.ValidString(note) || !strings.HasSuffix(note, "...") {
			t.Errorf("an API server rejects %d bytes: %q", len(note), note)
		}
	}
}

func TestRegarding(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u1", Controller: new(true)}
	frontDoor := map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
	cases := map[string]struct {
		reason string
		labels map[string]string
		owners []metav1.OwnerReference
		want   string
	}{
		"FrontDoor": {reason: "The user applied the Deployment.", labels: frontDoor, owners: []metav1.OwnerReference{owner}, want: "Deployment team-a/web u1"},
		"Templated": {reason: "The user applied the application, not the owner.", owners: []metav1.OwnerReference{owner}, want: " team-a/web-deployment r1"},
		"Orphaned":  {reason: "Without an owner, events are on the resource itself.", labels: frontDoor, want: " team-a/web-deployment r1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Regarding(&v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team-a", Name: "web-deployment", UID: "r1", Labels: tc.labels, OwnerReferences: tc.owners,
			}})
			text := got.GetObjectKind().GroupVersionKind().Kind + " " + client.ObjectKeyFromObject(got).String() + " " + string(got.GetUID())
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
