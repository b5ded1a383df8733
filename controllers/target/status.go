package target

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/policies/connectionsecret"
)

// observation is the state of a target's cluster.
type observation struct {
	state clusters.State
	// host of its endpoint; "" without a connection.
	host string
	// clusterID identifies the cluster; "" without a connection.
	clusterID string
	// expiry of its credential; zero if it cannot be known.
	expiry time.Time
	// fence is the state of the cluster's Lease; nil without Leases.
	fence *clusters.FenceStatus
	// refusal is the reason why the connection of the managed cluster is not copied.
	refusal *connectionsecret.Refusal
}

// setStatus computes a target's status from the state of its cluster. Condition Synced
// tells whether the connection could be made, and Ready whether it works.
func setStatus(target *v1alpha1.KubernetesTarget, observed observation, now time.Time, warning time.Duration) {
	status, state := &target.Status, observed.state
	setClusterStatus(target, observed)
	setCredentialStatus(target, observed.expiry, now, warning)
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.TargetReachable)
	if state.Reachable == metav1.ConditionUnknown && before != nil {
		return // the known state remains until there is a new one
	}
	if state.Version != "" {
		status.ServerVersion = state.Version
	}
	// The time is written only when the state changes: a time that changes with each
	// probe would be written each time.
	if !state.LastContact.IsZero() && (before == nil || before.Status != state.Reachable || status.LastContactTime == nil) {
		status.LastContactTime = storedTime(state.LastContact)
	}
	reachable := state.Condition(target.Name, target.Generation)
	shown := reachable
	if state.ProbeError != "" {
		shown = metav1.Condition{
			Type: v1alpha1.TargetReachable, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonProbeFailed, ObservedGeneration: target.Generation,
			Message: fmt.Sprintf("target %s %s; it becomes unreachable if this continues", target.Name, state.ProbeError),
		}
	}
	meta.SetStatusCondition(&status.Conditions, shown)
	meta.SetStatusCondition(&status.Conditions, syncedCondition(target, observed, reachable.Message))
	if fenced := observed.fence.Condition(target.Name, target.Generation); fenced != nil {
		meta.SetStatusCondition(&status.Conditions, *fenced)
	} else if observed.fence == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.Fenced)
	}
	ready := reachable
	ready.Type = v1alpha1.Ready
	meta.SetStatusCondition(&status.Conditions, ready)
}

// setClusterStatus sets the name and the ID of the cluster. Without a connection they
// are kept.
func setClusterStatus(target *v1alpha1.KubernetesTarget, observed observation) {
	status := &target.Status
	switch {
	case connectionsecret.IsCopied(target):
		status.Cluster = connectionsecret.ClusterTitle(*target.Spec.ClusterRef)
	case observed.host != "":
		status.Cluster = observed.host
	}
	if observed.clusterID != "" {
		status.ClusterID = observed.clusterID
	}
}

// syncedCondition returns condition Synced. Its message is that of the state of the
// cluster.
func syncedCondition(target *v1alpha1.KubernetesTarget, observed observation, message string) metav1.Condition {
	synced := metav1.Condition{
		Type: v1alpha1.Synced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied,
		Message: "the connection secret is usable", ObservedGeneration: target.Generation,
	}
	switch reason := observed.state.Reason; reason {
	case v1alpha1.ReasonSecretMissing, v1alpha1.ReasonInvalidConnection, v1alpha1.ReasonSecretNotControlled:
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, reason, message
	}
	if observed.refusal != nil {
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, observed.refusal.Reason, observed.refusal.Message
	}
	if conflict := observed.fence.Conflict(target.Name); conflict != "" {
		synced.Status, synced.Reason, synced.Message = metav1.ConditionFalse, v1alpha1.ReasonHubIdentityConflict, conflict
	}
	return synced
}

// storedTime returns a time with the precision of the API server.
func storedTime(t time.Time) *metav1.Time {
	out := metav1.NewTime(t).Rfc3339Copy()
	return &out
}

// setCredentialStatus sets the expiry of the credential, and its condition.
func setCredentialStatus(target *v1alpha1.KubernetesTarget, expiry, now time.Time, warning time.Duration) {
	status := &target.Status
	if expiry.IsZero() {
		status.CredentialExpiryTime = nil
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.CredentialValid)
		return
	}
	if ends := storedTime(expiry); !status.CredentialExpiryTime.Equal(ends) {
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

// credentialRequeueAfter returns the time until the status of a credential changes
// without an event; 0 for never.
func credentialRequeueAfter(expiry, now time.Time, warning time.Duration) time.Duration {
	switch {
	case expiry.IsZero() || !now.Before(expiry):
		return 0
	case now.Before(expiry.Add(-warning)):
		return expiry.Add(-warning).Sub(now)
	default:
		return expiry.Sub(now)
	}
}

// credentialEvents returns a warning for a credential that expired, or expires soon,
// once.
func credentialEvents(before, after []metav1.Condition) []events.Event {
	was, is := meta.FindStatusCondition(before, v1alpha1.CredentialValid), meta.FindStatusCondition(after, v1alpha1.CredentialValid)
	if is == nil || is.Reason == v1alpha1.ReasonCredentialCurrent || was != nil && was.Reason == is.Reason && was.Message == is.Message {
		return nil
	}
	return []events.Event{{Warning: true, Reason: is.Reason, Note: is.Message}}
}
