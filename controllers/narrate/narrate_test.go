package narrate

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

func TestChanges(t *testing.T) {
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
		"Nothing":   {reason: "Nothing is nothing to tell."},
		"Same":      {reason: "What did not change is not news.", before: refused, after: refused},
		"Gone":      {reason: "A condition that went says nothing.", before: refused},
		"Scheduled": {reason: "Where it went.", after: scheduled, want: []Event{{Reason: v1alpha1.ReasonScheduled, Note: "runs on eu-1"}}},
		"Reworded":  {reason: "What goes well may be said in other words, and is no news.", before: one(v1alpha1.Scheduled, yes, "Other", "words"), after: scheduled},
		"Refused":   {reason: "Why it was refused.", after: refused, want: []Event{{Warning: true, Reason: v1alpha1.ReasonRefused, Note: "no such namespace"}}},
		"RefusedOtherwise": {
			reason: "Another refusal is another piece of news.",
			before: refused, after: one(v1alpha1.Synced, no, v1alpha1.ReasonRefused, "image not allowed"),
			want: []Event{{Warning: true, Reason: v1alpha1.ReasonRefused, Note: "image not allowed"}},
		},
		"Applied":      {reason: "What went wrong went right again.", before: refused, after: one(v1alpha1.Synced, yes, v1alpha1.ReasonApplied, "applied"), want: []Event{{Reason: v1alpha1.ReasonApplied, Note: "applied"}}},
		"Reached":      {reason: "That a target answers is expected.", after: back},
		"Connected":    {reason: "Also after it was not known.", before: one(v1alpha1.TargetReachable, unknown, v1alpha1.ReasonConnecting, "connecting"), after: back},
		"Unreachable":  {reason: "That it does not is news.", before: back, after: away, want: []Event{{Warning: true, Reason: v1alpha1.ReasonUnreachable, Note: "target eu-1 refuses connections"}}},
		"StillAway":    {reason: "It is told once, however the outage shows from one probe to the next.", before: away, after: one(v1alpha1.TargetReachable, no, v1alpha1.ReasonUnreachable, "target eu-1 does not answer in time")},
		"AwayOtherway": {reason: "A credential that is refused is another matter.", before: away, after: one(v1alpha1.TargetReachable, no, v1alpha1.ReasonUnauthorized, "token expired"), want: []Event{{Warning: true, Reason: v1alpha1.ReasonUnauthorized, Note: "token expired"}}},
		"Recovered":    {reason: "Who was told that it went is told that it is back.", before: away, after: back, want: []Event{{Reason: v1alpha1.EventRecovered, Note: "target eu-1 answers again"}}},
		"OnTheWay": {
			reason: "Steps on the way are not news.",
			after: []metav1.Condition{
				condition(v1alpha1.TargetReachable, no, v1alpha1.ReasonConnecting, ""),
				condition(v1alpha1.Synced, no, v1alpha1.ReasonApplying, ""),
				condition(v1alpha1.Ready, no, v1alpha1.ReasonProgressing, ""),
			},
		},
		"Withdrawing": {reason: "Nor on the way out.", after: []metav1.Condition{condition(v1alpha1.Synced, no, v1alpha1.ReasonWithdrawing, ""), condition(v1alpha1.Ready, no, v1alpha1.ReasonNotScheduled, "")}},
		"Unknown":     {reason: "What is not known is not told.", after: one(v1alpha1.Ready, unknown, v1alpha1.ReasonProgressing, "")},
		"Failed":      {reason: "That it will never be ready is.", after: one(v1alpha1.Ready, no, v1alpha1.ReasonFailed, "deadline exceeded"), want: []Event{{Warning: true, Reason: v1alpha1.ReasonFailed, Note: "deadline exceeded"}}},
		"OthersTypes": {reason: "Only our own conditions are told.", after: one("Progressing", no, "Stuck", "stuck")},
		"Order": {
			reason: "A story begins at the beginning, however the list is ordered.",
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
			if diff := cmp.Diff(tc.want, Changes(tc.before, tc.after)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTell(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	Tell(recorder, &v1alpha1.KubernetesApplicationResource{}, "Propagate",
		Event{Reason: "Applied", Note: "100% of it"}, Event{Warning: true, Reason: "Refused", Note: "%s is not allowed"})
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	want := []string{"Normal Applied 100% of it", "Warning Refused %s is not allowed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a note is no format (-want +got):\n%s", diff)
	}
}

// TestLongNote cuts where the API server would refuse.
func TestLongNote(t *testing.T) {
	for _, shift := range []string{"", "a", "ab", "abc"} {
		note := shorten(shift + strings.Repeat("語é", 400))
		if len(note) > 1024 || !utf8.ValidString(note) || !strings.HasSuffix(note, "...") {
			t.Errorf("an API server would not take %d bytes: %q", len(note), note)
		}
	}
	if short := strings.Repeat("a", 1024); shorten(short) != short {
		t.Error("a note that fits was cut")
	}
}

func TestSubject(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u1", Controller: new(true)}
	frontDoor := map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
	cases := map[string]struct {
		reason string
		labels map[string]string
		owners []metav1.OwnerReference
		want   string
	}{
		"FrontDoor": {reason: "Who applied a Deployment looks at the Deployment.", labels: frontDoor, owners: []metav1.OwnerReference{owner}, want: "Deployment team-a/web u1"},
		"Templated": {reason: "Who wrote the resource looks at the resource.", owners: []metav1.OwnerReference{owner}, want: " team-a/web-deployment r1"},
		"Orphaned":  {reason: "Without an owner there is nobody else to tell.", labels: frontDoor, want: " team-a/web-deployment r1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Subject(&v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team-a", Name: "web-deployment", UID: "r1", Labels: tc.labels, OwnerReferences: tc.owners,
			}})
			text := got.GetObjectKind().GroupVersionKind().Kind + " " + client.ObjectKeyFromObject(got).String() + " " + string(got.GetUID())
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
