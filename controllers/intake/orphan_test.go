package intake

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

// TestOrphan: an object was deleted with --cascade=orphan, and garbage collection
// removed the object before it knew the resource. Intake removes the owner from the
// resource, which garbage collection would delete next.
func TestOrphan(t *testing.T) {
	scheme := reconcilertest.Scheme(t, clientgoscheme.AddToScheme, v1alpha1.AddToScheme)
	tests := map[string]struct {
		reason     string
		finalizers []string
		wantOwner  bool
	}{
		"Orphaned":   {"The object on the target stays.", []string{metav1.FinalizerOrphanDependents}, false},
		"Foreground": {"The resource is deleted before its owner.", []string{metav1.FinalizerDeleteDependents}, true},
		"Background": {"The resource is deleted after its owner.", nil, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(resourceOf("web", "eu-1")).Build()
			c := newController(hub, hub, kinds.Deployment{}, events.NewFakeRecorder(100))
			before := native("web")
			after := before.DeepCopy()
			after.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
			after.SetFinalizers(tc.finalizers)
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			c.orphaning.Handler().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)

			key := client.ObjectKeyFromObject(before)
			if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			resource := resourceOf("web", "")
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(resource), resource); err != nil {
				t.Fatal(err)
			}
			if got := metav1.GetControllerOf(resource) != nil; got != tc.wantOwner {
				t.Errorf("%s the resource has an owner: %t, want %t", tc.reason, got, tc.wantOwner)
			}
			if _, remembered := c.orphaning.UID(key); remembered {
				t.Error("the object is remembered although nothing is left to do")
			}
		})
	}
}
