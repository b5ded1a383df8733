package policycheck

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
)

const (
	// sliceDuration limits the evaluations of one reconcile, so that an application with
	// thousands of objects does not keep the worker of the scheduler from other
	// applications.
	sliceDuration = 2 * time.Second
	// nextSliceDelay gives the objects in the queue precedence.
	nextSliceDelay = 10 * time.Millisecond
	// maxFailures is the number of objects for which a policy may fail in one slice.
	// After that it is not evaluated for the other objects, because each failure may
	// take the policy's whole timeout.
	maxFailures = 3
)

// RetryInterval is the delay before policies that failed are evaluated again.
const RetryInterval = 5 * time.Second

// Reviews evaluates scheduling policies for all objects of an application, in slices: a
// review of many objects continues in the next reconcile. The engine keeps the results.
type Reviews struct {
	evaluator  *decisions.Evaluator
	controller string
	slice      time.Duration

	mu sync.Mutex
	// unfinished are the reviews that need another slice. They may be lost: the next
	// reconcile begins again, and reuses the results that do not depend on the snapshot.
	unfinished map[types.NamespacedName]*snapshot
}

// snapshot holds the inputs that change during a review without a change of the
// application. Policies see their values from the start of the review in every slice,
// as the Pods of one scheduling cycle do in kube-scheduler. Otherwise a review whose
// policies read these inputs would never end in a busy namespace.
type snapshot struct {
	// now is the time that policies see. Lost: the results of policies that read the
	// clock.
	now time.Time
	// placed counts the resources by target. Lost: the results of policies that read
	// input.placed.
	placed map[string]int
	// evaluated is the number of objects with a result at the end of the last slice. It
	// shows whether a slice made progress. Lost: nothing.
	evaluated int
	// slice is the duration of the next slice. It doubles if a slice made no progress,
	// because the results did not fit in the engine's cache. Lost: one slice for each
	// doubling.
	slice time.Duration
}

// NewReviews returns the reviews of one controller, whose name is for the decision log.
func NewReviews(evaluator *decisions.Evaluator, controller string) *Reviews {
	return NewReviewsWithSlice(evaluator, controller, sliceDuration)
}

// NewReviewsWithSlice returns reviews that evaluate policies for at most a duration in
// one reconcile.
func NewReviewsWithSlice(evaluator *decisions.Evaluator, controller string, slice time.Duration) *Reviews {
	return &Reviews{evaluator: evaluator, controller: controller, slice: slice, unfinished: map[types.NamespacedName]*snapshot{}}
}

// Review is the state of a review at the end of a slice.
type Review struct {
	// Decision on all evaluated objects. If it allows them, it is only valid if the
	// review is complete.
	*engine.Decision
	// Evaluated is the number of objects with a result, of Total.
	Evaluated, Total int
	// failed means that the evaluation of a policy with failurePolicy Fail failed. The
	// objects after it were not evaluated.
	failed bool
	// RequeueAfter is the delay before the next slice, or before failed policies are
	// evaluated again. It is 0 if only a change can lead to another result.
	RequeueAfter time.Duration
}

// Complete tells whether all objects have a result, or a policy with failurePolicy Fail
// failed. The latter denies the application until the policy can be evaluated.
func (r Review) Complete() bool { return r.Evaluated == r.Total || r.failed }

// Scheduling evaluates the policies for the objects of an application or a resource,
// until the slice ends. questions is called only if a policy applies. Its questions
// have a stable order. It fails if the policies are not loaded in time.
func (r *Reviews) Scheduling(ctx context.Context, unit types.NamespacedName, questions func(context.Context) ([]engine.Question, error)) (Review, error) {
	all, err := collect(ctx, r.evaluator, policyv1alpha1.Scheduling, unit.Namespace, questions)
	if err != nil || len(all) == 0 {
		r.Forget(unit)
		return Review{Decision: &engine.Decision{}}, err
	}
	s := r.snapshotOf(unit, all[0])
	review := r.run(ctx, s, all)
	log := ctrl.LoggerFrom(ctx).V(2).WithValues("evaluated", review.Evaluated, "total", review.Total)
	progress := review.Evaluated > s.evaluated
	switch {
	case review.failed:
		log.Info("Stopped evaluating policies after a failure")
		review.RequeueAfter = RetryInterval
		if progress {
			r.keep(unit, s, review.Evaluated, s.slice)
		} else { // the evaluation failed for this object, perhaps because of an input of the snapshot
			r.Forget(unit)
		}
	case review.Evaluated == review.Total:
		r.Forget(unit)
	default:
		log.Info("Evaluated policies for a part of the objects")
		review.RequeueAfter = nextSliceDelay
		slice := s.slice
		if !progress {
			slice *= 2
		}
		r.keep(unit, s, review.Evaluated, slice)
	}
	return review, nil
}

// run evaluates the questions until all have a result, the slice ends, or a policy with
// failurePolicy Fail fails. Each slice makes progress: it makes at least one
// evaluation, and reused results take no time.
func (r *Reviews) run(ctx context.Context, s *snapshot, all []engine.Question) Review {
	var merged engine.Merger
	caller := callerOf(ctx, r.controller)
	failures, failed := map[string]int{}, map[string]error{}
	review := Review{Total: len(all)}
	var spent time.Duration
	for _, q := range all {
		if spent >= s.slice || ctx.Err() != nil {
			break
		}
		q.Now, q.Placed, q.Reuse, q.Failed = s.now, s.placed, true, failed
		d := r.evaluate(ctx, caller, q)
		merged.Add(d)
		if slices.ContainsFunc(d.Denied, decisions.IsFailure) {
			review.failed = true
			break
		}
		review.Evaluated++
		for _, e := range d.Evaluations {
			spent += e.Duration
			if e.Err == nil || e.Reused {
				continue
			}
			if failures[e.Policy]++; failures[e.Policy] >= maxFailures {
				failed[e.Policy] = e.Err
			}
		}
	}
	review.Decision = merged.Decision()
	return review
}

func (r *Reviews) evaluate(ctx context.Context, caller decisions.Caller, q engine.Question) *engine.Decision {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return r.evaluator.Evaluate(ctx, caller, q)
}

// Forget drops the unfinished review of a unit.
func (r *Reviews) Forget(unit types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unfinished, unit)
}

func (r *Reviews) snapshotOf(unit types.NamespacedName, first engine.Question) *snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.unfinished[unit]; ok {
		return s
	}
	return &snapshot{now: r.evaluator.Now(), placed: first.Placed, slice: r.slice}
}

func (r *Reviews) keep(unit types.NamespacedName, s *snapshot, evaluated int, slice time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unfinished[unit] = &snapshot{now: s.now, placed: s.placed, evaluated: evaluated, slice: slice}
}
