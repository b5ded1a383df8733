// Package scheduler selects a KubernetesTarget for every KubernetesApplication, and for
// every KubernetesApplicationResource without an application. A unit keeps its target
// until a user requests a move.
package scheduler

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/targetselection"
)

// scheduler holds the steps that applications and resources share.
type scheduler struct {
	hub      client.Client
	writer   reconciler.Writer
	recorder events.Recorder
	reviews  *policycheck.Reviews
	// load counts the objects on each target. It is valid once it has synced.
	load          *targetselection.Load
	synced        *LoadSynced
	allowDefaults policies.AllowDefaults
	clusterScoped policies.ClusterScopedFunc
}

func newScheduler(hub client.Client, recorder events.Recorder, reviews *policycheck.Reviews, load *targetselection.Load) scheduler {
	return scheduler{
		hub: hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.SchedulerManager}, recorder: recorder,
		reviews: reviews, load: load,
	}
}

// scope is the state of one reconcile.
type scope struct {
	unit   unit
	before unit
	// from is the target that the unit has to leave, if moving.
	from   string
	moving bool
	// members are the resources of the unit. The cache owns them.
	members  []v1alpha1.KubernetesApplicationResource
	query    targetselection.Query
	review   policycheck.Review
	decision targetselection.Decision
}

func (s *scope) name() types.NamespacedName {
	return types.NamespacedName{Namespace: s.unit.GetNamespace(), Name: s.unit.GetName()}
}

func (s *scope) setCondition(c metav1.Condition) { meta.SetStatusCondition(s.unit.conditions(), c) }

// schedule runs the steps for one unit.
func (r *scheduler) schedule(ctx context.Context, u unit) (reconcile.Result, error) {
	s := &scope{unit: u, before: u.copy()}
	s.from, s.moving = moveFrom(u)
	ctx = reconciler.WithLogValues(ctx, u.kind(), klog.KObj(u))
	return reconciler.Run(ctx, s, []reconciler.Step[*scope]{
		{Name: "keep target", Run: r.keepTarget},
		{Name: "list members", Run: r.listMembers},
		{Name: "check data", Run: r.checkData},
		{Name: "list candidates", Run: r.listCandidates},
		{Name: "evaluate policies", Run: r.evaluatePolicies},
		{Name: "choose target", Run: r.choose},
		{Name: "report no target", Run: r.reportNoTarget},
		{Name: "set target", Run: r.setChosenTarget},
	}, r.patchStatus)
}

// keepTarget ends the reconcile of a unit that needs no choice: it has a target and
// does not move, it has left the target that it had to leave, or the cache does not
// show its last placement yet.
func (r *scheduler) keepTarget(ctx context.Context, s *scope) error {
	at := s.unit.target()
	switch {
	case at != nil && !s.moving:
		r.reviews.Forget(s.name())
		if s.unit.reportsTarget() {
			s.setCondition(scheduled(s.unit, at.Name, ""))
		}
	case at != nil && at.Name != s.from:
		r.reviews.Forget(s.name())
		return r.setTarget(ctx, s, at.Name, "")
	case !r.load.Pending(s.unit.loadUnit(), s.unit.GetResourceVersion()):
		return nil
	}
	return reconciler.ErrDone
}

func (r *scheduler) listMembers(ctx context.Context, s *scope) error {
	var err error
	if s.members, err = s.unit.members(ctx, r.hub); err != nil {
		return err
	}
	if !s.moving && !s.unit.complete(s.members) {
		return reconciler.ErrDone
	}
	return nil
}

// checkData ends the reconcile of a unit that would lose data by a move, until a user
// allows that.
func (r *scheduler) checkData(ctx context.Context, s *scope) error {
	if !s.moving || s.unit.target() == nil {
		return nil
	}
	reason := policies.DataLossReason(s.unit, s.members)
	if reason == "" {
		return nil
	}
	ctrl.LoggerFrom(ctx).V(2).Info("Skipped move", "reason", reason)
	s.setCondition(cannotMove(s.unit, s.from, reason))
	return reconciler.ErrDone
}

// reportNoTarget ends the reconcile of a unit that no target matches.
func (r *scheduler) reportNoTarget(ctx context.Context, s *scope) error {
	if s.decision.Target != "" {
		return nil
	}
	c := unschedulable(s.unit, s.decision)
	if s.unit.target() != nil {
		c = cannotMove(s.unit, s.from, s.decision.Message(s.unit.GetNamespace()))
	} else {
		s.unit.setPending()
	}
	ctrl.LoggerFrom(ctx).V(2).Info("Found no target", "reason", c.Reason, "message", c.Message)
	s.setCondition(c)
	return s.end()
}

func (r *scheduler) setChosenTarget(ctx context.Context, s *scope) error {
	return r.setTarget(ctx, s, s.decision.Target, s.decision.Explanation())
}

// setTarget writes the target of a unit, which ends a move.
func (r *scheduler) setTarget(ctx context.Context, s *scope, target, explanation string) error {
	ctx = reconciler.WithLogValues(ctx, "target", klog.KRef(s.unit.GetNamespace(), target))
	ctrl.LoggerFrom(ctx).V(2).Info("Chose target", "from", s.from, "reason", explanation)
	s.unit.setTarget(target)
	annotations := s.unit.GetAnnotations()
	delete(annotations, v1alpha1.MoveFromAnnotation)
	delete(annotations, v1alpha1.AllowDataLossAnnotation) // it is for one move
	s.unit.SetAnnotations(annotations)
	written, err := r.writer.Patch(ctx, s.before.object(), s.unit.object(), "scheduling")
	if err != nil || !written {
		r.load.ForgetAssumed(s.unit.loadUnit())
		return err
	}
	r.load.RecordWrite(s.unit.loadUnit(), s.unit.GetResourceVersion())
	if s.unit.reportsTarget() {
		s.setCondition(scheduled(s.unit, target, explanation))
	}
	return reconciler.ErrDone
}

// patchStatus writes the status, and emits its changes as events. The event that a unit
// cannot move is also emitted on its members, whose users requested the move.
func (r *scheduler) patchStatus(ctx context.Context, s *scope) error {
	written, err := r.writer.PatchStatus(ctx, s.before.object(), s.unit.object(), reconciler.Emit(r.recorder, s.unit.object(), "Schedule"))
	if err != nil || !written {
		return err
	}
	is, was := meta.FindStatusCondition(*s.unit.conditions(), v1alpha1.Scheduled), meta.FindStatusCondition(*s.before.conditions(), v1alpha1.Scheduled)
	if is == nil || is.Reason != v1alpha1.ReasonCannotMove || was != nil && was.Reason == is.Reason && was.Message == is.Message {
		return nil
	}
	event := events.Event{Warning: true, Reason: is.Reason, Note: is.Message}
	events.Emit(r.recorder, s.unit.object(), "Move", event)
	if _, ok := s.unit.(application); !ok {
		return nil // a resource is its only member
	}
	for i := range s.members {
		events.Emit(r.recorder, events.Regarding(&s.members[i]), "Move", event)
	}
	return nil
}
