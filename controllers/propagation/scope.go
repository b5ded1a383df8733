package propagation

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/policies"
)

// scope is the state of one reconcile of a resource on one target.
type scope struct {
	target types.NamespacedName
	// resource is changed by the steps. before is the resource as it was stored.
	resource, before *v1alpha1.KubernetesApplicationResource
	// desired is the object to apply. observed is the object on the target, or nil.
	desired, observed *unstructured.Unstructured
	// state compares them.
	state plan.State
	// takesOver says that the owner of the object is gone, and that the resource owns it
	// from now on.
	takesOver bool
	// connection leads to the target, and reader reads its cache of the object's kind.
	connection *clusters.TargetConnection
	reader     clusters.Reader
	// kindGone means that the target no longer serves the kind, so that the object is
	// gone as well.
	kindGone bool
	// content is the content of a Secret or ConfigMap that is propagated under its own
	// name. The template of its resource does not have it.
	content *plan.Dependency
	// revision counts the changes of the content.
	revision    int64
	driftPolicy v1alpha1.DriftPolicy
	// dependencies are the Secrets and ConfigMaps that the object needs next to it.
	dependencies []plan.Dependency
	// excessCopies are deleted once the object is applied.
	excessCopies []*unstructured.Unstructured
	// events are emitted after the status is written.
	events []events.Event
	// skipStatus means that this reconcile does not write the status.
	skipStatus bool
	// holdStatusFor is the delay until a reconcile writes the status; 0 for now.
	holdStatusFor time.Duration
}

// compare sets the state of the object after a change of the desired one.
func (s *scope) compare(hubID string) {
	s.state = plan.StateOf(s.desired, s.observed, s.resource, hubID)
	if s.takesOver && s.state == plan.Foreign {
		s.state = plan.Drifted
	}
}

// pollInterval is the interval, jittered, at which the object of another owner is read
// again. The caches only have objects of this hub, so no event reports its deletion.
const pollInterval = 20 * time.Second

// cacheLag is the time after which a cache has a write of this process.
const cacheLag = 20 * time.Millisecond

// setFenceConflict reports that another Portico with the identity of this hub writes to
// the target. An event of the target enqueues the resource when the conflict has ended.
func (s *scope) setFenceConflict() {
	if s.connection == nil || s.skipStatus {
		return
	}
	if conflict := s.connection.Fence().Conflict(s.target.Name); conflict != "" {
		s.setCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonHubIdentityConflict, conflict)
	}
}

func (s *scope) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.resource.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: s.resource.Generation,
	})
}

// setFailed reports that the object was not applied.
func (s *scope) setFailed(reason, message string) {
	s.setCondition(v1alpha1.Synced, metav1.ConditionFalse, reason, message)
	s.resource.Status.State = v1alpha1.StateFailed
}

// clearRemoteStatus reports that no object of the resource runs on the target. The
// status of a resource that moves is still the one from its old target.
func (s *scope) clearRemoteStatus() {
	if s.isMoving() {
		return
	}
	s.resource.Status.Remote, s.resource.Status.ObservedHubGeneration = nil, 0
	s.setCondition(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonFailed, "no object of this resource runs on target "+s.target.Name)
}

// logOutcome writes the decision of this reconcile to the log.
func (s *scope) logOutcome(ctx context.Context) {
	synced := meta.FindStatusCondition(s.resource.Status.Conditions, v1alpha1.Synced)
	switch {
	case s.skipStatus || synced == nil:
	case synced.Status == metav1.ConditionTrue:
		log.FromContext(ctx).V(4).Info("Found object as desired", "state", s.state, "reason", synced.Reason)
	default:
		log.FromContext(ctx).V(2).Info("Did not apply object", "state", s.state, "reason", synced.Reason, "message", synced.Message)
	}
}

// isMoving tells whether a resource moves to the target, and is not ready there yet.
func (s *scope) isMoving() bool {
	return s.resource.Spec.LeavingTargetRef != nil && s.resource.Status.Target != s.target.Name
}

// isRemoval tells whether the object is to be deleted from the target, or to remain
// there without Portico's marks.
func (s *scope) isRemoval() bool {
	return s.resource.DeletionTimestamp != nil || orphansObject(s.resource) || !plan.RefersTo(s.resource.Spec.TargetRef, s.target)
}

// isOn tells whether a resource is on a target, or leaves it.
func isOn(resource *v1alpha1.KubernetesApplicationResource, target types.NamespacedName) bool {
	return slices.Contains(policies.TargetsOf(resource), target.Name)
}

// orphansObject tells whether the object of a resource remains on its target: the
// native object was deleted with --cascade=orphan, or the resource is being deleted and
// has the deletion policy Orphan.
func orphansObject(resource *v1alpha1.KubernetesApplicationResource) bool {
	if deletion, _ := policies.DeletionPolicyOf(resource); deletion == v1alpha1.DeletionOrphan && resource.DeletionTimestamp != nil {
		return true
	}
	return lostNativeObject(resource)
}

// lostNativeObject tells whether a resource was created for a native object, and has no
// owner now: its native object was deleted with --cascade=orphan, or a backup left the
// owner reference out.
func lostNativeObject(resource *v1alpha1.KubernetesApplicationResource) bool {
	return resource.Labels[v1alpha1.FrontDoorLabel] == v1alpha1.FrontDoor && metav1.GetControllerOf(resource) == nil
}

// withStatusOf returns a copy of a stored resource with the status of another: the base
// of the status patch.
func withStatusOf(stored, before *v1alpha1.KubernetesApplicationResource) *v1alpha1.KubernetesApplicationResource {
	out := stored.DeepCopy()
	before.Status.DeepCopyInto(&out.Status)
	return out
}
