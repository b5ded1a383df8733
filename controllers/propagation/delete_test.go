package propagation

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

// TestPropagationPolicy tests the propagation policy of the deletion on the target.
func TestPropagationPolicy(t *testing.T) {
	by := func(apiVersion, kind, name string, finalizers ...string) *v1alpha1.KubernetesApplicationResource {
		return &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "web-deployment", Finalizers: finalizers,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "u1", Controller: new(true)}},
		}}
	}
	owned := func(name string, finalizers ...string) *v1alpha1.KubernetesApplicationResource {
		return by("apps/v1", "Deployment", name, finalizers...)
	}
	native := func(name string, finalizers ...string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: "u1", Finalizers: finalizers}}
	}
	scheme := reconcilertest.Scheme(t, appsv1.AddToScheme)
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(native("background"), native("foreground", metav1.FinalizerDeleteDependents)).
		WithInterceptorFuncs(reconcilertest.Before(func(r reconcilertest.Request) error {
			if r.Key.Name == "fails" {
				return apierrors.NewInternalError(errors.New("etcd"))
			}
			return nil
		})).Build()
	cases := map[string]struct {
		reason   string
		resource *v1alpha1.KubernetesApplicationResource
		want     metav1.DeletionPropagation
	}{
		"Alone":        {reason: "A resource without an owner is deleted in the background.", resource: &v1alpha1.KubernetesApplicationResource{}, want: metav1.DeletePropagationBackground},
		"Itself":       {reason: "A resource with foreground deletion is deleted in the foreground.", resource: owned("background", metav1.FinalizerDeleteDependents), want: metav1.DeletePropagationForeground},
		"Background":   {reason: "The owner is deleted in the background.", resource: owned("background"), want: metav1.DeletePropagationBackground},
		"Foreground":   {reason: "The owner is deleted in the foreground.", resource: owned("foreground"), want: metav1.DeletePropagationForeground},
		"Gone":         {reason: "The owner does not exist.", resource: owned("gone"), want: metav1.DeletePropagationBackground},
		"NotOurs":      {reason: "An owner that Portico may not read does not block the deletion.", resource: by("example.org/v1", "Thing", "foreground"), want: metav1.DeletePropagationBackground},
		"CannotBeRead": {reason: "A failed read of the owner is tried again.", resource: owned("fails")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := (&remover{base: &base{live: live}}).propagationPolicy(t.Context(), tc.resource)
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("policy %q and error %v, want %q: %s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestOrphansObject(t *testing.T) {
	frontDoor := map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
	owner := []metav1.OwnerReference{{Name: "web", Controller: new(true)}}
	for name, tc := range map[string]struct {
		labels map[string]string
		owners []metav1.OwnerReference
		want   bool
	}{
		"Owned":     {frontDoor, owner, false},
		"Orphaned":  {frontDoor, nil, true},
		"ByItself":  {nil, nil, false},
		"Templated": {nil, owner, false},
	} {
		resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, OwnerReferences: tc.owners}}
		if got := scope.OrphansObject(resource); got != tc.want {
			t.Errorf("%s: orphaned = %t, want %t", name, got, tc.want)
		}
		resource.Annotations = map[string]string{v1alpha1.DeletionAnnotation: string(v1alpha1.DeletionOrphan)}
		if got := scope.OrphansObject(resource); got != tc.want {
			t.Errorf("%s: the object is not being deleted, and was treated as if it were", name)
		}
		now := metav1.Now()
		resource.DeletionTimestamp = &now
		if !scope.OrphansObject(resource) {
			t.Errorf("%s: it is deleted although it shall stay", name)
		}
	}
}
