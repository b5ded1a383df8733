package application

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// delays records the delay of each application.
type delays struct {
	queue
	of map[string]time.Duration
}

func (d delays) AddAfter(req reconcile.Request, delay time.Duration) { d.of[req.Name] = delay }

func TestResourceHandler(t *testing.T) {
	resource := func(application, target string) *v1alpha1.KubernetesApplicationResource {
		r := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", Labels: map[string]string{v1alpha1.ApplicationLabel: application},
		}}
		if target != "" {
			r.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
		}
		return r
	}
	cases := map[string]struct {
		reason string
		handle func(context.Context, handler.EventHandler, queue)
		want   map[string]time.Duration
	}{
		"Unplaced": {
			reason: "A resource without a target queues its application at once.",
			handle: func(ctx context.Context, h handler.EventHandler, q queue) {
				h.Create(ctx, event.CreateEvent{Object: resource("web", "")}, q)
			},
			want: map[string]time.Duration{"web": 0},
		},
		"Placed": {
			reason: "A placed resource changes the summary only.",
			handle: func(ctx context.Context, h handler.EventHandler, q queue) {
				h.Create(ctx, event.CreateEvent{Object: resource("web", "dev")}, q)
			},
			want: map[string]time.Duration{"web": summaryDelay},
		},
		"Moved": {
			reason: "Both applications are summarized: the old one and the new one.",
			handle: func(ctx context.Context, h handler.EventHandler, q queue) {
				h.Update(ctx, event.UpdateEvent{ObjectOld: resource("web", "dev"), ObjectNew: resource("shop", "dev")}, q)
			},
			want: map[string]time.Duration{"web": summaryDelay, "shop": summaryDelay},
		},
		"Deleted": {
			reason: "An application is deleted with its last resource.",
			handle: func(ctx context.Context, h handler.EventHandler, q queue) {
				h.Delete(ctx, event.DeleteEvent{Object: resource("web", "dev")}, q)
			},
			want: map[string]time.Duration{"web": summaryDelay},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := delays{of: map[string]time.Duration{}}
			tc.handle(t.Context(), resourceHandler(), got)
			if diff := cmp.Diff(tc.want, got.of); diff != "" {
				t.Errorf("\n%s\nqueued: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
