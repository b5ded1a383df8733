// Package policycheck evaluates policies for controllers: admission may have been
// unavailable, and policies may have changed since. Objects that policies hold back are
// enqueued when the policies change, so that no controller polls.
package policycheck

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
)

// timeout is the limit on the wait for the policies to be loaded, and on the evaluation
// of all policies for one object.
const timeout = 10 * time.Second

// Scheduling evaluates the scheduling policies for an object that a controller is about
// to schedule in a namespace. questions is called only if a policy applies. controller is
// the name in the decision log. It fails when the policies are not loaded in time.
func Scheduling(ctx context.Context, evaluator *decisions.Evaluator, controller, namespace string, questions func(context.Context) ([]engine.Question, error)) (*engine.Decision, error) {
	return evaluate(ctx, evaluator, policyv1alpha1.Scheduling, controller, namespace, questions)
}

// Publish evaluates the publish policies in the same way, for a target that a controller
// is about to publish.
func Publish(ctx context.Context, evaluator *decisions.Evaluator, controller, namespace string, questions func(context.Context) ([]engine.Question, error)) (*engine.Decision, error) {
	return evaluate(ctx, evaluator, policyv1alpha1.Publish, controller, namespace, questions)
}

func evaluate(ctx context.Context, evaluator *decisions.Evaluator, t policyv1alpha1.PolicyType, controller, namespace string, questions func(context.Context) ([]engine.Question, error)) (*engine.Decision, error) {
	all, err := collect(ctx, evaluator, t, namespace, questions)
	if err != nil || len(all) == 0 {
		return &engine.Decision{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return evaluator.Evaluate(ctx, callerOf(ctx, controller), all...), nil
}

// collect returns the questions for the policies of a type, once they are loaded; none
// when no policy applies to the namespace.
func collect(ctx context.Context, evaluator *decisions.Evaluator, t policyv1alpha1.PolicyType, namespace string, questions func(context.Context) ([]engine.Question, error)) ([]engine.Question, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-evaluator.Loaded():
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the policies to be loaded: %w", ctx.Err())
	}
	if !evaluator.Applies(t, namespace) {
		return nil, nil
	}
	return questions(ctx)
}

func callerOf(ctx context.Context, controller string) decisions.Caller {
	return decisions.Caller{ID: string(ctrlcontroller.ReconcileIDFromContext(ctx)), Component: controller, Log: ctrl.Log.WithName("policy")}
}

// Namespace reads the namespace of a policy question. The cache only has its metadata,
// and policies see no other fields.
func Namespace(ctx context.Context, hub client.Reader, name string) (*corev1.Namespace, error) {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := hub.Get(ctx, client.ObjectKey{Name: name}, metadata); err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return decisions.NamespaceFromMetadata(name, metadata), nil
}

// ChangeNotifier notifies of changes of the policies in force.
type ChangeNotifier interface {
	Changes() <-chan struct{}
}

// OnChange is a source that enqueues the requests of list whenever the policies change.
func OnChange(policies ChangeNotifier, list func(ctx context.Context) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		changes := policies.Changes()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-changes:
					for _, request := range list(ctx) {
						queue.Add(request)
					}
				}
			}
		}()
		return nil
	})
}
