// Package reconciler holds the parts that every reconciler shares: the runner of
// named steps, the writes to the hub, and the predicates of watches.
package reconciler

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/codes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Step is one named part of a reconcile. Run reads and changes the scope, which is
// the state of that reconcile. An error of Run ends the reconcile; see ErrDone and
// RequeueAfter for the ends that are no failures.
type Step[S any] struct {
	Name string
	Run  func(ctx context.Context, scope S) error
}

// ErrDone ends a reconcile before its last step, without a failure. An event starts
// the next reconcile.
var ErrDone = errors.New("the reconcile is done")

// requeueAfter ends a reconcile without a failure. No event starts the next one.
type requeueAfter time.Duration

func (r requeueAfter) Error() string { return "requeue after " + time.Duration(r).String() }

// RequeueAfter returns the error with which a step ends a reconcile that runs again
// after a delay, because no event starts it.
func RequeueAfter(delay time.Duration) error { return requeueAfter(delay) }

// Run runs the steps in order until one of them returns an error. It then calls
// finish, in any case: finish writes the status and emits the events, also those of a
// failed step. finish may be nil.
//
//	return reconciler.Run(ctx, scope, []reconciler.Step[*scope]{
//		{Name: "connect", Run: r.connect},
//		{Name: "apply", Run: r.apply},
//	}, r.finish)
func Run[S any](ctx context.Context, scope S, steps []Step[S], finish func(context.Context, S) error) (reconcile.Result, error) {
	ctx, span := startSpan(ctx, scope)
	defer span.End()
	ended := RunSteps(ctx, scope, steps)
	if ended != nil && !IsEnd(ended) {
		span.SetStatus(codes.Error, ended.Error())
	}
	if finish == nil {
		return Result(ended)
	}
	err := finish(ctx, scope)
	switch {
	case err == nil:
		return Result(ended)
	case IsEnd(ended):
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, errors.Join(ended, err)
}

// LogValuer is a scope whose steps find out more about its object: every line that a
// step writes to the log has these keys and values.
type LogValuer interface {
	LogValues() []any
}

// RunSteps runs the steps in order until one of them returns an error, and returns
// that error. It writes each step to the log.
func RunSteps[S any](ctx context.Context, scope S, steps []Step[S]) error {
	for _, step := range steps {
		err := step.Run(withLogValues(ctx, scope), scope)
		if ctrl.LoggerFrom(ctx).V(4).Enabled() {
			// The error itself is in the line that controller-runtime writes.
			ctrl.LoggerFrom(withLogValues(ctx, scope)).V(4).Info("Ran step", "step", step.Name, "outcome", outcome(err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func withLogValues(ctx context.Context, scope any) context.Context {
	if valuer, ok := scope.(LogValuer); ok {
		return WithLogValues(ctx, valuer.LogValues()...)
	}
	return ctx
}

func outcome(err error) string {
	var after requeueAfter
	switch {
	case err == nil:
		return "continued"
	case !IsEnd(err):
		return "failed"
	case errors.As(err, &after):
		return "requeued"
	}
	return "done"
}

// CacheLag is the usual time after which the cache has a write of this process.
const CacheLag = 20 * time.Millisecond

// Result converts the error that ended the steps to the result of the reconcile.
func Result(ended error) (reconcile.Result, error) {
	if !IsEnd(ended) {
		return reconcile.Result{}, ended
	}
	var after requeueAfter
	if errors.As(ended, &after) {
		return reconcile.Result{RequeueAfter: time.Duration(after)}, nil
	}
	return reconcile.Result{}, nil
}

// IsEnd tells whether a reconcile ended without a failure: after its last step, with
// ErrDone, or with RequeueAfter. Joined errors are always a failure.
func IsEnd(ended error) bool {
	if ended == nil {
		return true
	}
	var joined interface{ Unwrap() []error }
	if errors.As(ended, &joined) {
		return false
	}
	var after requeueAfter
	return errors.Is(ended, ErrDone) || errors.As(ended, &after)
}

// WithLogValues adds keys and values to every line that the rest of a reconcile
// writes to the log.
func WithLogValues(ctx context.Context, keysAndValues ...any) context.Context {
	return ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithValues(keysAndValues...))
}
