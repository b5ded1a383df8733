// Package scope holds the state of one reconcile of a resource on one target, and makes the
// requests to the target.
package scope

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

// Scope is the state of one reconcile of a resource on one target.
type Scope struct {
	// Target is the target.
	Target types.NamespacedName
	// Resource is changed by the steps. Before is the resource as it was stored.
	Resource, Before *v1alpha1.KubernetesApplicationResource
	// Desired is the object to apply. Observed is the object on the target, or nil.
	Desired, Observed *unstructured.Unstructured
	// State compares them.
	State plan.State
	// TakesOver says that the owner of the object is gone, and that the resource owns it
	// from now on.
	TakesOver bool
	// Connection leads to the target, and Reader reads its cache of the object's kind.
	Connection *clusters.TargetConnection
	Reader     clusters.Reader
	// KindGone means that the target no longer serves the kind, so that the object is
	// gone as well.
	KindGone bool
	// Content is the content of a Secret or ConfigMap that is propagated under its own
	// name. The template of its resource does not have it.
	Content *plan.Dependency
	// Revision counts the changes of the content.
	Revision int64
	// DriftPolicy is the drift policy of the resource on this target.
	DriftPolicy v1alpha1.DriftPolicy
	// Dependencies are the Secrets and ConfigMaps that the object needs next to it.
	Dependencies []plan.Dependency
	// ExcessCopies are deleted once the object is applied.
	ExcessCopies []*unstructured.Unstructured
	// Events are emitted after the status is written.
	Events []events.Event
	// SkipStatus means that this reconcile does not write the status.
	SkipStatus bool
	// HoldStatusFor is the delay until a reconcile writes the status; 0 for now.
	HoldStatusFor time.Duration
}

// Compare sets the state of the object after a change of the desired one.
func (s *Scope) Compare(hubID string) {
	s.State = plan.StateOf(s.Desired, s.Observed, s.Resource, hubID)
	if s.TakesOver && s.State == plan.Foreign {
		s.State = plan.Drifted
	}
}

// PollInterval is the interval, jittered, at which the object of another owner is read
// again. The caches only have objects of this hub, so no event reports its deletion.
const PollInterval = 20 * time.Second

// SetFenceConflict reports that another Portico with the identity of this hub writes to
// the target. An event of the target enqueues the resource when the conflict has ended.
func (s *Scope) SetFenceConflict() {
	if s.Connection == nil || s.SkipStatus {
		return
	}
	if conflict := s.Connection.Fence().Conflict(s.Target.Name); conflict != "" {
		s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonHubIdentityConflict, conflict)
	}
}

// SetCondition sets a condition of the resource.
func (s *Scope) SetCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.Resource.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: s.Resource.Generation,
	})
}

// SetFailed reports that the object was not applied.
func (s *Scope) SetFailed(reason, message string) {
	s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, reason, message)
	s.Resource.Status.State = v1alpha1.StateFailed
}

// ClearRemoteStatus reports that no object of the resource runs on the target. The
// status of a resource that moves is still the one from its old target.
func (s *Scope) ClearRemoteStatus() {
	if s.IsMoving() {
		return
	}
	s.Resource.Status.Remote, s.Resource.Status.ObservedHubGeneration = nil, 0
	s.SetCondition(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonFailed, "no object of this resource runs on target "+s.Target.Name)
}

// LogOutcome writes the decision of this reconcile to the log.
func (s *Scope) LogOutcome(ctx context.Context) {
	synced := meta.FindStatusCondition(s.Resource.Status.Conditions, v1alpha1.Synced)
	switch {
	case s.SkipStatus || synced == nil:
	case synced.Status == metav1.ConditionTrue:
		log.FromContext(ctx).V(4).Info("Found object as desired", "state", s.State, "reason", synced.Reason)
	default:
		log.FromContext(ctx).V(2).Info("Did not apply object", "state", s.State, "reason", synced.Reason, "message", synced.Message)
	}
}

// IsMoving tells whether a resource moves to the target, and is not ready there yet.
func (s *Scope) IsMoving() bool {
	return s.Resource.Spec.LeavingTargetRef != nil && s.Resource.Status.Target != s.Target.Name
}

// IsRemoval tells whether the object is to be deleted from the target, or to remain
// there without Portico's marks.
func (s *Scope) IsRemoval() bool {
	return s.Resource.DeletionTimestamp != nil || OrphansObject(s.Resource) || !plan.RefersTo(s.Resource.Spec.TargetRef, s.Target)
}

// IsOn tells whether a resource is on a target, or leaves it.
func IsOn(resource *v1alpha1.KubernetesApplicationResource, target types.NamespacedName) bool {
	return slices.Contains(policies.TargetsOf(resource), target.Name)
}

// OrphansObject tells whether the object of a resource remains on its target: the
// native object was deleted with --cascade=orphan, or the resource is being deleted and
// has the deletion policy Orphan.
func OrphansObject(resource *v1alpha1.KubernetesApplicationResource) bool {
	if deletion, _ := policies.DeletionPolicyOf(resource); deletion == v1alpha1.DeletionOrphan && resource.DeletionTimestamp != nil {
		return true
	}
	return policies.LostNativeObject(resource)
}

// WithStatusOf returns a copy of a stored resource with the status of another: the base
// of the status patch.
func WithStatusOf(stored, before *v1alpha1.KubernetesApplicationResource) *v1alpha1.KubernetesApplicationResource {
	out := stored.DeepCopy()
	before.Status.DeepCopyInto(&out.Status)
	return out
}
