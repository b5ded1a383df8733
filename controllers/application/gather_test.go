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

// delays notes how long each application has to wait.
type delays struct {
	queue
	of map[string]time.Duration
}

func (d delays) AddAfter(req reconcile.Request, delay time.Duration) { d.of[req.Name] = delay }

func TestGathered(t *testing.T) {
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
		happen func(context.Context, handler.EventHandler, queue)
		want   map[string]time.Duration
	}{
		"Unplaced": {
			reason: "A resource that runs nowhere yet is not kept waiting.",
			happen: func(ctx context.Context, h handler.EventHandler, q queue) {
				h.Create(ctx, event.CreateEvent{Object: resource("web", "")}, q)
			},
			want: map[string]time.Duration{"web": 0},
		},
		"Placed": {
			reason: "One that has its target only adds to the sum.",
			happen: func(ctx context.Context, h handler.EventHandler, q queue) {
				h.Create(ctx, event.CreateEvent{Object: resource("web", "dev")}, q)
			},
			want: map[string]time.Duration{"web": gather},
		},
		"Moved": {
			reason: "The application it leaves is summed up as well as the one it joins.",
			happen: func(ctx context.Context, h handler.EventHandler, q queue) {
				h.Update(ctx, event.UpdateEvent{ObjectOld: resource("web", "dev"), ObjectNew: resource("shop", "dev")}, q)
			},
			want: map[string]time.Duration{"web": gather, "shop": gather},
		},
		"Deleted": {
			reason: "The last resource takes the application along.",
			happen: func(ctx context.Context, h handler.EventHandler, q queue) {
				h.Delete(ctx, event.DeleteEvent{Object: resource("web", "dev")}, q)
			},
			want: map[string]time.Duration{"web": gather},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := delays{of: map[string]time.Duration{}}
			tc.happen(t.Context(), gathered(), got)
			if diff := cmp.Diff(tc.want, got.of); diff != "" {
				t.Errorf("\n%s\nqueued: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
