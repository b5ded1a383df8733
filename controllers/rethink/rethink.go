// Package rethink queues what policies held back when the policies change, so
// that nobody has to look again and again.
package rethink

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

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
