package target

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestCredentialStory looks at a credential whenever time alone changes what is
// said of it, until it does no more.
func TestCredentialStory(t *testing.T) {
	type chapter struct {
		After  time.Duration // since the credential was made
		Status metav1.ConditionStatus
		Reason string
		Warns  []string
	}
	const lifetime, warning = 10 * time.Hour, time.Hour
	made := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	expiry := made.Add(lifetime)
	target := &v1alpha1.KubernetesTarget{}
	look := func(expiry, now time.Time) chapter {
		before := target.DeepCopy().Status.Conditions
		describeCredential(target, expiry, now, warning)
		told := chapter{After: now.Sub(made)}
		if is := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.CredentialValid); is != nil {
			told.Status, told.Reason = is.Status, is.Reason
		}
		for _, event := range warnings(before, target.Status.Conditions) {
			told.Warns = append(told.Warns, event.Reason)
		}
		return told
	}
	var got []chapter
	for now, again := made, time.Nanosecond; again > 0; now = now.Add(again) {
		got = append(got, look(expiry, now))
		if twice := look(expiry, now); twice.Warns != nil {
			t.Errorf("after %s it warns again of the same: %v", now.Sub(made), twice.Warns)
		}
		again = nextLook(expiry, now, warning)
	}
	want := []chapter{
		{After: 0, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialCurrent},
		{After: lifetime - warning, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialExpiring, Warns: []string{v1alpha1.ReasonCredentialExpiring}},
		{After: lifetime, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCredentialExpired, Warns: []string{v1alpha1.ReasonCredentialExpired}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the story differs (-want +got):\n%s", diff)
	}

	// Another is put into the Secret: that is no warning. It ends soon as well,
	// and at another time: that is one.
	renewed := expiry.Add(lifetime)
	want = []chapter{
		{After: lifetime, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialCurrent},
		{After: lifetime, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialExpiring, Warns: []string{v1alpha1.ReasonCredentialExpiring}},
		{After: lifetime, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialExpiring, Warns: []string{v1alpha1.ReasonCredentialExpiring}},
		{After: lifetime},
	}
	got = []chapter{
		look(renewed, expiry), look(expiry.Add(time.Minute), expiry), look(expiry.Add(2*time.Minute), expiry), look(time.Time{}, expiry),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the story of its successors differs (-want +got):\n%s", diff)
	}
	if target.Status.CredentialExpiryTime != nil || nextLook(time.Time{}, expiry, warning) != 0 {
		t.Errorf("a credential of which nothing is known is said to end at %s", target.Status.CredentialExpiryTime)
	}
}
