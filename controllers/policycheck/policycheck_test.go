package policycheck

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type changing chan struct{}

func (c changing) Changes() <-chan struct{} { return c }

func TestOnChange(t *testing.T) {
	changes := make(changing)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	held := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	source := OnChange(changes, func(context.Context) []reconcile.Request { return []reconcile.Request{held} })
	if err := source.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if queue.Len() != 0 {
		t.Error("something is queued, and nothing changed")
	}
	for range 2 {
		changes <- struct{}{}
		got, _ := queue.Get()
		if got != held {
			t.Errorf("queued %v", got)
		}
		queue.Done(got)
	}
}
