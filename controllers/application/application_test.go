package application

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

func hub(t *testing.T, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, OwnerIndex, IndexOwner).
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

// TestOneRefusedResource holds up no other, nor the summary.
func TestOneRefusedResource(t *testing.T) {
	refused := errors.New("refused by somebody's policy")
	store := hub(t, placedApplication(), resource("a"), resource("b")).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if o.GetName() == "a" {
				return refused
			}
			return c.Patch(ctx, o, p, options...)
		},
	}).Build()
	c := &Controller{hub: store, recorder: events.NewFakeRecorder(10)}
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

// TestOthersFinalizers are not lost to a cache that does not know them yet.
func TestOthersFinalizers(t *testing.T) {
	store := hub(t, resource("a")).Build()
	c := &Controller{hub: store, recorder: events.NewFakeRecorder(10)}
	cached := resource("a")
	if err := store.Get(t.Context(), client.ObjectKeyFromObject(cached), cached); err != nil {
		t.Fatal(err)
	}
	newer := cached.DeepCopy()
	newer.Finalizers = []string{"backup.example.org/keep"}
	if err := store.Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if err := c.place(t.Context(), placedApplication(), cached); !apierrors.IsConflict(err) {
		t.Errorf("placing by an old copy ended with %v, want a conflict", err)
	}
	if err := c.place(t.Context(), placedApplication(), newer); err != nil {
		t.Fatal(err)
	}
	want := []string{"backup.example.org/keep", v1alpha1.PropagationFinalizer}
	if diff := cmp.Diff(want, newer.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}
