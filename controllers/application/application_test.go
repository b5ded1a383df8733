package application

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

func hub(t *testing.T, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, OwnerIndex, IndexOwner).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, func(o client.Object) []string { return policies.ApplicationKeys(o) }).
		WithStatusSubresource(&v1alpha1.KubernetesApplicationResource{}, &v1alpha2.KubernetesApplication{})
}

func resource(name string) *v1alpha1.KubernetesApplicationResource {
	return &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: name, Labels: map[string]string{v1alpha1.ApplicationLabel: "shop"},
	}}
}

func placedApplication() *v1alpha2.KubernetesApplication {
	return &v1alpha2.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "shop"},
		Spec:       v1alpha2.KubernetesApplicationSpec{TargetRef: &v1alpha1.TargetReference{Name: "eu-1"}},
	}
}

// TestRejectedResource: the patch of one resource is rejected. The other resources are
// placed, and the status is written.
func TestRejectedResource(t *testing.T) {
	refused := errors.New("denied by a policy")
	store := hub(t, placedApplication(), resource("a"), resource("b")).WithInterceptorFuncs(reconcilertest.Before(func(r reconcilertest.Request) error {
		if r.Verb == "patch" && r.Key.Name == "a" {
			return refused
		}
		return nil
	})).Build()
	c := newController(store, events.NewFakeRecorder(10))
	key := client.ObjectKey{Namespace: "team-a", Name: "shop"}
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !errors.Is(err, refused) {
		t.Errorf("the error is %v, want the refusal", err)
	}
	b, app := resource("b"), placedApplication()
	for _, object := range []client.Object{b, app} {
		if err := store.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(&v1alpha1.TargetReference{Name: "eu-1"}, b.Spec.TargetRef); diff != "" {
		t.Errorf("the other resource was not placed (-want +got):\n%s", diff)
	}
	if app.Status.DesiredResources != 2 {
		t.Errorf("the application counts %d resources, want 2", app.Status.DesiredResources)
	}
}

// TestStaleCacheKeepsFinalizers: another writer set a finalizer that the cache does not
// have yet.
func TestStaleCacheKeepsFinalizers(t *testing.T) {
	store := hub(t, resource("a")).Build()
	c := newController(store, events.NewFakeRecorder(10))
	cached := resource("a")
	if err := store.Get(t.Context(), client.ObjectKeyFromObject(cached), cached); err != nil {
		t.Fatal(err)
	}
	newer := cached.DeepCopy()
	newer.Finalizers = []string{"backup.example.org/keep"}
	if err := store.Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if err := c.placeResource(t.Context(), placedApplication(), cached); !apierrors.IsConflict(err) {
		t.Errorf("placing by an old copy ended with %v, want a conflict", err)
	}
	if err := c.placeResource(t.Context(), placedApplication(), newer); err != nil {
		t.Fatal(err)
	}
	want := []string{"backup.example.org/keep", v1alpha1.PropagationFinalizer}
	if diff := cmp.Diff(want, newer.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}

// TestOrphan: an application is deleted with --cascade=orphan, and garbage collection
// removes the finalizer before it knows the resources. The resources remain.
func TestOrphan(t *testing.T) {
	for name, remembered := range map[string]bool{"Orphaned": true, "Background": false} {
		t.Run(name, func(t *testing.T) {
			app := placedApplication()
			app.UID = "shop-uid"
			app.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			app.Finalizers = []string{v1alpha1.TemplatesFinalizer}
			made := resource("a")
			made.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(app, v1alpha2.GroupVersion.WithKind("KubernetesApplication"))}
			store := hub(t, app, made).Build()
			c := newController(store, events.NewFakeRecorder(10))
			if remembered {
				seen := app.DeepCopy()
				seen.Finalizers = append(seen.Finalizers, metav1.FinalizerOrphanDependents)
				queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer queue.ShutDown()
				c.orphaning.Handler().Update(t.Context(), event.UpdateEvent{ObjectOld: app, ObjectNew: seen}, queue)
			}
			for range 2 { // the second reconcile runs after the writes of the first
				if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(app)}); err != nil {
					t.Fatal(err)
				}
			}
			err := store.Get(t.Context(), client.ObjectKeyFromObject(made), made)
			if kept := err == nil && metav1.GetControllerOf(made) == nil; kept != remembered {
				t.Errorf("the resource stays without an owner: %t, want %t (%v)", kept, remembered, err)
			}
			if err := store.Get(t.Context(), client.ObjectKeyFromObject(app), app); !apierrors.IsNotFound(err) {
				t.Errorf("the application is still there (%v)", err)
			}
		})
	}
}

// TestPace: a resource changes a moment after a write of the application's status. The
// next write waits.
func TestPace(t *testing.T) {
	requests := &reconcilertest.Requests{}
	store := hub(t, placedApplication(), resource("a")).WithInterceptorFuncs(requests.Funcs()).Build()
	c := newController(store, events.NewFakeRecorder(10))
	req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(placedApplication())}
	submit := func() {
		a := resource("a")
		if err := store.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
			t.Fatal(err)
		}
		a.Status.State = v1alpha1.StateSubmitted
		if err := store.Status().Update(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		reason  string
		change  func()
		writes  bool
		requeue bool
	}{
		{reason: "The first status is written at once.", change: func() {}, writes: true},
		{reason: "An equal status is not written.", change: func() {}},
		{reason: "A changed status waits.", change: submit, requeue: true},
		{reason: "A changed status is written after the interval.", change: func() { c.statuses.Interval = 0 }, writes: true},
	} {
		step.change()
		requests.Sent = nil
		result, err := c.Reconcile(t.Context(), req)
		if err != nil || (result.RequeueAfter > 0) != step.requeue || slices.Contains(requests.Sent, "patch status of shop") != step.writes {
			t.Errorf("%s requests %v, requeue after %s, error %v", step.reason, requests.Sent, result.RequeueAfter, err)
		}
	}
}
