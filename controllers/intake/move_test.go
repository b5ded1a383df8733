package intake

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

// TestReturnToHubUnready: a Deployment cannot become ready on the hub. Its reconciles
// back off, and list no ReplicaSets. When it is ready, its resource is deleted.
func TestReturnToHubUnready(t *testing.T) {
	scheme := reconcilertest.Scheme(t, clientgoscheme.AddToScheme, v1alpha1.AddToScheme)
	deployment := native("web")
	deployment.SetGeneration(1)
	for path, value := range map[string]any{"spec": map[string]any{"replicas": int64(1)}, "status": map[string]any{"observedGeneration": int64(1), "replicas": int64(1)}} {
		deployment.Object[path] = value
	}
	resource := resourceOf("web", "eu-1")
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deployment, resource).WithStatusSubresource(&appsv1.Deployment{}).Build()
	lists := 0
	live := interceptor.NewClient(hub, reconcilertest.Before(func(r reconcilertest.Request) error {
		if r.Verb == "list" {
			lists++
		}
		return nil
	}))
	c := newController(hub, live, kinds.Deployment{}, events.NewFakeRecorder(100))

	var last time.Duration
	for i := range 10 {
		result, err := c.returnToHub(t.Context(), deployment.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter < last || i == 9 && result.RequeueAfter < 15*rolloutRequeueAfter {
			t.Errorf("reconcile %d has the delay %s, and the one before had %s", i, result.RequeueAfter, last)
		}
		last = result.RequeueAfter
	}
	if lists != 0 {
		t.Errorf("%d lists of ReplicaSets from the API server for a Deployment without held ones", lists)
	}

	ready := deployment.DeepCopy()
	status := map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1),
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}}}
	if err := unstructured.SetNestedMap(ready.Object, status, "status"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.returnToHub(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(resource), resource); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Deployment is ready on the hub, and its resource stays (%v)", err)
	}
}
