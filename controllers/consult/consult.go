// Package consult asks policies for controllers: admission may have been away, and
// policies may have changed since. What they hold back is queued when they change,
// so that nobody has to look again and again.
package consult

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
)

// timeout is how long all policies have together.
const timeout = 10 * time.Second

// Scheduling asks what policies say of what is about to be scheduled in a
// namespace. The questions are gathered only when there is a policy to answer
// them. who is the controller that asks, for the decision log. It fails when the
// policies are not loaded in time.
func Scheduling(ctx context.Context, asker *decisions.Asker, who, namespace string, gather func(ctx context.Context) ([]engine.Question, error)) (*engine.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-asker.Loaded():
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the policies to be loaded: %w", ctx.Err())
	}
	if !asker.Asks(policyv1alpha1.Scheduling, namespace) {
		return &engine.Decision{}, nil
	}
	questions, err := gather(ctx)
	if err != nil || len(questions) == 0 {
		return &engine.Decision{}, err
	}
	occasion := decisions.Occasion{ID: string(controller.ReconcileIDFromContext(ctx)), Asks: who, Log: ctrl.Log.WithName("policy")}
	return asker.Ask(ctx, occasion, questions...), nil
}

// Changing says when the policies in force have changed.
type Changing interface {
	Changes() <-chan struct{}
}

// OnChange is a source of all that is held back, whenever policies change.
func OnChange(policies Changing, held func(ctx context.Context) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		changes := policies.Changes()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-changes:
					for _, request := range held(ctx) {
						queue.Add(request)
					}
				}
			}
		}()
		return nil
	})
}
