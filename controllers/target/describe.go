package target

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies/publication"
)

// knowledge is what is known of a target's cluster, apart from its status.
type knowledge struct {
	state clusters.State
	// host of its endpoint, "" while there is no connection.
	host string
	// expiry of its credential, zero when that cannot be known.
	expiry time.Time
	// unpublished is why the managed cluster it names is not published.
	unpublished *publication.Refusal
}

// describe sets a target's status from what is known of its cluster. Synced
// says whether its connection could be made at all, Ready whether it works.
func describe(target *v1alpha1.KubernetesTarget, known knowledge, now time.Time, warning time.Duration) {
	status, state := &target.Status, known.state
	switch {
	case publication.IsCopied(target):
		status.Cluster = publication.Title(*target.Spec.ClusterRef)
	case known.host != "":
		status.Cluster = known.host
	}
	describeCredential(target, known.expiry, now, warning)
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.TargetReachable)
	if state.Reachable == metav1.ConditionUnknown && before != nil {
		return // what was known stands until more is
	}
	if state.Version != "" {
		status.ServerVersion = state.Version
	}
	// Written when it begins or ends only: a time that moves would have to be
	// stored forever.
	if !state.Contact.IsZero() && (before == nil || before.Status != state.Reachable || status.LastContactTime == nil) {
		status.LastContactTime = stored(state.Contact)
	}
	reachable := state.Condition(target.Name, target.Generation)
	meta.SetStatusCondition(&status.Conditions, reachable)
	synced := metav1.Condition{
		Type: v1alpha1.Synced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied,
		Message: "the connection secret is usable", ObservedGeneration: target.Generation,
	}
	switch state.Reason {
	case v1alpha1.ReasonSecretMissing, v1alpha1.ReasonInvalidConnection:
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, state.Reason, reachable.Message
	}
	if known.unpublished != nil {
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, known.unpublished.Reason, known.unpublished.Message
	}
	meta.SetStatusCondition(&status.Conditions, synced)
	ready := reachable
	ready.Type = v1alpha1.Ready
	meta.SetStatusCondition(&status.Conditions, ready)
}

// stored is a time as the API server keeps it.
func stored(t time.Time) *metav1.Time {
	out := metav1.NewTime(t).Rfc3339Copy()
	return &out
}

// describeCredential says when the credential ends, and whether that is soon.
func describeCredential(target *v1alpha1.KubernetesTarget, expiry, now time.Time, warning time.Duration) {
	status := &target.Status
	if expiry.IsZero() {
		status.CredentialExpiryTime = nil
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.CredentialValid)
		return
	}
	if ends := stored(expiry); !status.CredentialExpiryTime.Equal(ends) {
		status.CredentialExpiryTime = ends
	}
	at := expiry.UTC().Format(time.RFC3339)
	valid := metav1.Condition{
		Type: v1alpha1.CredentialValid, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCredentialCurrent,
		Message: "the connection secret's credential ends at " + at, ObservedGeneration: target.Generation,
	}
	switch {
	case !now.Before(expiry):
		valid.Status, valid.Reason = metav1.ConditionFalse, v1alpha1.ReasonCredentialExpired
		valid.Message = fmt.Sprintf("the connection secret's credential ended at %s; put a new one into the secret", at)
	case !now.Before(expiry.Add(-warning)):
		valid.Reason = v1alpha1.ReasonCredentialExpiring
		valid.Message += "; put a new one into the secret before that"
	}
	meta.SetStatusCondition(&status.Conditions, valid)
}

// nextLook is how long it takes until time alone changes what is said of a
// credential; 0 when it does not.
func nextLook(expiry, now time.Time, warning time.Duration) time.Duration {
	switch {
	case expiry.IsZero() || !now.Before(expiry):
		return 0
	case now.Before(expiry.Add(-warning)):
		return expiry.Add(-warning).Sub(now)
	default:
		return expiry.Sub(now)
	}
}

// warnings tells of a credential that has come to its end, or near it, once.
func warnings(before, after []metav1.Condition) []narrate.Event {
	was, is := meta.FindStatusCondition(before, v1alpha1.CredentialValid), meta.FindStatusCondition(after, v1alpha1.CredentialValid)
	if is == nil || is.Reason == v1alpha1.ReasonCredentialCurrent || was != nil && was.Reason == is.Reason && was.Message == is.Message {
		return nil
	}
	return []narrate.Event{{Warning: true, Reason: is.Reason, Note: is.Message}}
}
