package propagation

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

// accountOn is the resource of ServiceAccount checkout on a target.
func accountOn(t *testing.T, target string, change ...func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
	t.Helper()
	out := resourceWith(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: checkout, namespace: team-a}}`)
	out.Name = kinds.DependencyName(kinds.ServiceAccountKind, "checkout", target)
	out.UID = types.UID("uid-of-" + target)
	out.Labels = map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor, v1alpha1.DependencyLabel: v1alpha1.DependencyShared}
	out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kinds.ServiceAccountKind, Name: "checkout", UID: "native", Controller: new(true)}}
	out.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	for _, c := range change {
		c(out)
	}
	return out
}

func hubWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, v1alpha1.AddToScheme)).WithObjects(objects...).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.DependencyIndex, IndexDependencies).Build()
}

// accountOnCluster is the object that a resource applied.
func accountOnCluster(t *testing.T, by *v1alpha1.KubernetesApplicationResource) *unstructured.Unstructured {
	t.Helper()
	out, err := plan.Desired(by, testHub)
	if err != nil {
		t.Fatal(err)
	}
	out.SetUID("remote")
	return out
}

// TestShareObject is about target again, which is the same cluster as target dev.
func TestShareObject(t *testing.T) {
	other := func(r *v1alpha1.KubernetesApplicationResource) { r.OwnerReferences[0].UID = "another" }
	for name, tc := range map[string]struct {
		reason string
		hub    []client.Object
		change func(*unstructured.Unstructured)
		state  plan.State
		ends   bool
	}{
		"Shared":    {reason: "The resource of the other target applies it.", hub: []client.Object{accountOn(t, "dev")}, state: plan.Shared, ends: true},
		"OwnerGone": {reason: "An object that its resource left is taken over.", state: plan.Drifted},
		"Recreated": {reason: "The other resource is for an earlier account of that name, which is about to be deleted.", hub: []client.Object{accountOn(t, "dev", other)}, state: plan.Foreign},
		"OtherHub": {reason: "The object of another hub is not touched.", hub: []client.Object{accountOn(t, "dev")}, state: plan.Foreign,
			change: func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{v1alpha1.ManagedByLabel: "another"})
			}},
		"Unowned": {reason: "The object of nobody is not touched.", state: plan.Foreign, change: func(o *unstructured.Unstructured) { o.SetLabels(nil); o.SetAnnotations(nil) }},
		"Templated": {reason: "A user sends an account of that name.", state: plan.Foreign,
			change: func(o *unstructured.Unstructured) {
				annotations := o.GetAnnotations()
				annotations[v1alpha1.ResourceNameAnnotation] = "accounts"
				o.SetAnnotations(annotations)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := hubWith(t, tc.hub...)
			b := &base{hub: hub, live: hub, options: Options{HubID: testHub}}
			s := &scope.Scope{Target: types.NamespacedName{Namespace: "team-a", Name: "again"}, Resource: accountOn(t, "again"), State: plan.Foreign, Observed: accountOnCluster(t, accountOn(t, "dev"))}
			s.Desired = accountOnCluster(t, s.Resource)
			if tc.change != nil {
				tc.change(s.Observed)
			}
			err := (&applier{base: b, observer: observer{base: b}}).shareObject(t.Context(), s)
			if !reconciler.IsEnd(err) || (err != nil) != tc.ends || s.State != tc.state {
				t.Errorf("state %s, error %v: %s", s.State, err, tc.reason)
			}
			if synced := meta.IsStatusConditionTrue(s.Resource.Status.Conditions, v1alpha1.Synced); synced != tc.ends {
				t.Errorf("synced %t: %s", synced, tc.reason)
			}
		})
	}
}

func TestLeaveToSibling(t *testing.T) {
	shares := func(r *v1alpha1.KubernetesApplicationResource) { r.Status.RemoteUID = "remote" }
	deleted := func(r *v1alpha1.KubernetesApplicationResource) {
		r.DeletionTimestamp, r.Finalizers = new(metav1.Now()), []string{v1alpha1.PropagationFinalizer}
	}
	for name, tc := range map[string]struct {
		reason string
		hub    []client.Object
		want   bool
	}{
		"Alone":  {reason: "It is deleted with its last resource.", hub: []client.Object{accountOn(t, "dev", shares)}},
		"Shared": {reason: "The resource of another target shares it.", hub: []client.Object{accountOn(t, "again", shares)}, want: true},
		"Label": {reason: "The object has a resource for its label, which did not share it yet.", hub: []client.Object{accountOn(t, "dev", func(r *v1alpha1.KubernetesApplicationResource) {
			r.Name = kinds.ResourceName(kinds.ServiceAccountKind, "checkout")
		})}, want: true},
		"Other":   {reason: "The account on another cluster is another object.", hub: []client.Object{accountOn(t, "prod")}},
		"Deleted": {reason: "The other resource is being deleted, too.", hub: []client.Object{accountOn(t, "again", shares, deleted)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope.Scope{Target: types.NamespacedName{Namespace: "team-a", Name: "dev"}, Resource: accountOn(t, "dev"), Observed: accountOnCluster(t, accountOn(t, "dev"))}
			got, err := (&remover{base: &base{hub: hubWith(t, tc.hub...)}}).leaveToSibling(t.Context(), s)
			if err != nil || got != tc.want {
				t.Errorf("left %t (%v): %s", got, err, tc.reason)
			}
		})
	}
}

// TestAnnotateShared: the object of a resource remains on its target with its
// dependencies.
func TestAnnotateShared(t *testing.T) {
	for key, leave := range map[string]func(*remover, context.Context, *scope.Scope) error{
		v1alpha1.DeletionAnnotation: (*remover).orphanShared, v1alpha1.LeftAnnotation: (*remover).leaveShared,
	} {
		t.Run(key, func(t *testing.T) { testAnnotateShared(t, key, leave) })
	}
}

func testAnnotateShared(t *testing.T, key string, leave func(*remover, context.Context, *scope.Scope) error) {
	t.Helper()
	hub := hubWith(t, accountOn(t, "dev"), accountOn(t, "prod"))
	resource := resourceWith(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a}}`)
	resource.Spec.Dependencies = []v1alpha1.Dependency{{Kind: "Secret", Name: "sql"}, {Kind: kinds.ServiceAccountKind, Name: "checkout", Shared: true}, {Kind: kinds.ServiceAccountKind, Name: "missing", Shared: true}}
	r := &remover{base: &base{hub: hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.PropagationManager}}}
	if err := leave(r, t.Context(), &scope.Scope{Target: types.NamespacedName{Namespace: "team-a", Name: "dev"}, Resource: resource}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, target := range []string{"dev", "prod"} {
		stored := &v1alpha1.KubernetesApplicationResource{}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(accountOn(t, target)), stored); err != nil {
			t.Fatal(err)
		}
		got[target] = stored.Annotations[key]
	}
	want := map[string]string{"dev": map[string]string{v1alpha1.DeletionAnnotation: "Orphan", v1alpha1.LeftAnnotation: "true"}[key], "prod": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
