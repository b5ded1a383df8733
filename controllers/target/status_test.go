package target

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/fence"
)

// TestCredentialStatus computes the status of a credential at every time at which it
// changes without an event.
func TestCredentialStatus(t *testing.T) {
	type step struct {
		After  time.Duration // time since the credential was made
		Status metav1.ConditionStatus
		Reason string
		Warns  []string
	}
	const lifetime, warning = 10 * time.Hour, time.Hour
	made := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	expiry := made.Add(lifetime)
	target := &v1alpha1.KubernetesTarget{}
	statusAt := func(expiry, now time.Time) step {
		before := target.DeepCopy().Status.Conditions
		setCredentialStatus(target, expiry, now, warning)
		out := step{After: now.Sub(made)}
		if is := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.CredentialValid); is != nil {
			out.Status, out.Reason = is.Status, is.Reason
		}
		for _, event := range credentialEvents(before, target.Status.Conditions) {
			out.Warns = append(out.Warns, event.Reason)
		}
		return out
	}
	var got []step
	for now, requeueAfter := made, time.Nanosecond; requeueAfter > 0; now = now.Add(requeueAfter) {
		got = append(got, statusAt(expiry, now))
		if twice := statusAt(expiry, now); twice.Warns != nil {
			t.Errorf("after %s there is a second warning: %v", now.Sub(made), twice.Warns)
		}
		requeueAfter = credentialRequeueAfter(expiry, now, warning)
	}
	want := []step{
		{After: 0, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialCurrent},
		{After: lifetime - warning, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialExpiring, Warns: []string{v1alpha1.ReasonCredentialExpiring}},
		{After: lifetime, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCredentialExpired, Warns: []string{v1alpha1.ReasonCredentialExpired}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sequence differs (-want +got):\n%s", diff)
	}

	// A new credential gets no warning. A new credential that expires at another time
	// within the warning period gets one.
	renewed := expiry.Add(lifetime)
	want = []step{
		{After: lifetime, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialCurrent},
		{After: lifetime, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialExpiring, Warns: []string{v1alpha1.ReasonCredentialExpiring}},
		{After: lifetime, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialExpiring, Warns: []string{v1alpha1.ReasonCredentialExpiring}},
		{After: lifetime},
	}
	got = []step{
		statusAt(renewed, expiry), statusAt(expiry.Add(time.Minute), expiry), statusAt(expiry.Add(2*time.Minute), expiry), statusAt(time.Time{}, expiry),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sequence of its successors differs (-want +got):\n%s", diff)
	}
	if target.Status.CredentialExpiryTime != nil || credentialRequeueAfter(time.Time{}, expiry, warning) != 0 {
		t.Errorf("a credential without a known expiry has expiry time %s", target.Status.CredentialExpiryTime)
	}
}

// TestFenceStatus reports which process writes to a cluster.
func TestFenceStatus(t *testing.T) {
	type shown struct{ Fenced, Synced string }
	for name, tc := range map[string]struct {
		reason string
		fence  *clusters.FenceStatus
		want   shown
	}{
		"None":     {reason: "Without a Lease there is no condition.", want: shown{Synced: "True Applied"}},
		"Held":     {reason: "The process holds the Lease.", fence: &clusters.FenceStatus{State: fence.Held}, want: shown{"True LeaseHeld", "True Applied"}},
		"NoRight":  {reason: "Without the right to the Lease a process writes, and does not notice another writer.", fence: &clusters.FenceStatus{State: fence.Unfenced}, want: shown{"Unknown NoLease", "True Applied"}},
		"Conflict": {reason: "Another process holds the Lease.", fence: &clusters.FenceStatus{State: fence.Conflict, HubID: "hub-1", Holder: "clone_1"}, want: shown{"False HubIdentityConflict", "False HubIdentityConflict"}},
		"Pending":  {reason: "The condition is kept until the Lease is read.", fence: &clusters.FenceStatus{State: fence.Pending}, want: shown{"True LeaseHeld", "True Applied"}},
		"Lapsed":   {reason: "A late renewal is not reported.", fence: &clusters.FenceStatus{State: fence.Lapsed}, want: shown{"True LeaseHeld", "True Applied"}},
	} {
		target := &v1alpha1.KubernetesTarget{}
		target.Name = "prod"
		meta.SetStatusCondition(&target.Status.Conditions, metav1.Condition{Type: v1alpha1.Fenced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonLeaseHeld})
		before := target.DeepCopy()
		setStatus(target, observation{state: clusters.State{Reachable: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable}, fence: tc.fence}, time.Now(), time.Hour)
		condition := func(kind string) string {
			if c := meta.FindStatusCondition(target.Status.Conditions, kind); c != nil {
				return string(c.Status) + " " + c.Reason
			}
			return ""
		}
		if diff := cmp.Diff(tc.want, shown{condition(v1alpha1.Fenced), condition(v1alpha1.Synced)}); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
		emitted := events.OfConditions(before.Status.Conditions, target.Status.Conditions)
		if conflict := slices.ContainsFunc(emitted, func(e events.Event) bool { return e.Reason == v1alpha1.ReasonHubIdentityConflict }); conflict != (name == "Conflict") {
			t.Errorf("%s: the events are %v", name, emitted)
		}
	}
}
