package dependencies

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

func account(change ...func(*corev1.ServiceAccount)) *corev1.ServiceAccount {
	out := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "checkout", UID: "u1"}}
	for _, c := range change {
		c(out)
	}
	return out
}

// deployment is the resource of a Deployment on a target, whose Pods name the account.
func deployment(name, target string) *v1alpha1.KubernetesApplicationResource {
	out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
	out.Spec.Dependencies = []v1alpha1.Dependency{{Kind: kinds.ServiceAccountKind, Name: "checkout", Shared: true}}
	if target != "" {
		out.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	}
	return out
}

// stored is the resource of the account on a target.
func stored(t *testing.T, target string, change ...func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
	t.Helper()
	out, err := resourceFor(account(), target)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(out)
	}
	return out
}

// index is the index function of policies.DependencyIndex.
func index(object client.Object) []string {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	return policies.DependencyKeys(resource)
}

func TestReconcile(t *testing.T) {
	failure := errors.New("failure")
	const list, dev, prod = "list " + policies.DependencyIndex, "checkout.dev-serviceaccount", "checkout.prod-serviceaccount"
	outdated := func(r *v1alpha1.KubernetesApplicationResource) {
		r.Spec.Template.Raw = []byte(`{"apiVersion":"v1","kind":"ServiceAccount"}`)
	}
	leaving := deployment("web", "prod")
	leaving.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: "dev"}
	deleted := deployment("web", "dev")
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{v1alpha1.PropagationFinalizer}
	used := deployment("web", "dev")
	used.Spec.Dependencies, used.Status.Dependencies = nil, used.Spec.Dependencies
	for name, tc := range map[string]struct {
		reason  string
		hub     []client.Object
		fail    map[string]error
		sent    []string
		err     error
		requeue bool
		event   bool
	}{
		"Unneeded": {reason: "An account that no resource needs stays on the hub.", hub: []client.Object{account()}, sent: []string{list}},
		"Unplaced": {reason: "Without a target there is nowhere to send it.", hub: []client.Object{account(), deployment("web", "")}, sent: []string{list}},
		"Needed": {reason: "One resource serves all on a target.", hub: []client.Object{account(), deployment("web", "dev"), deployment("db", "dev")},
			sent: []string{list, "create " + dev}},
		"TwoTargets": {reason: "Each target has its own.", hub: []client.Object{account(), deployment("web", "dev"), deployment("db", "prod")},
			sent: []string{list, "create " + dev, "create " + prod}},
		"InSync":  {reason: "A resource that is as desired is not written.", hub: []client.Object{account(), deployment("web", "dev"), stored(t, "dev")}, sent: []string{list}},
		"Changed": {reason: "A change of the account is sent.", hub: []client.Object{account(), deployment("web", "dev"), stored(t, "dev", outdated)}, sent: []string{list, "patch " + dev}},
		"Moves": {reason: "The old target keeps it until the last object has left.", hub: []client.Object{account(), leaving, stored(t, "dev")},
			sent: []string{list, "create " + prod}},
		"Deleting": {reason: "It is deleted after the object that needs it.", hub: []client.Object{account(), deleted, stored(t, "dev")}, sent: []string{list}},
		"Last":     {reason: "It goes with the last object that needs it.", hub: []client.Object{account(), deployment("web", "prod"), stored(t, "dev"), stored(t, "prod")}, sent: []string{list, "delete " + dev}},
		"Used":     {reason: "Pods of an earlier template may use it.", hub: []client.Object{account(), used, stored(t, "dev")}, sent: []string{list}},
		"Released": {reason: "A resource that lost its target is replaced.", hub: []client.Object{account(), stored(t, "dev", func(r *v1alpha1.KubernetesApplicationResource) {
			r.Spec.TargetRef = nil
		})}, sent: []string{list, "delete " + dev}},
		"Gone": {reason: "Garbage collection deletes the resources of a deleted account.", hub: []client.Object{deployment("web", "dev"), stored(t, "dev")}, sent: []string{list}},
		"NameTaken": {reason: "The resource of a user is not touched.", hub: []client.Object{account(), deployment("web", "dev"), stored(t, "dev", func(r *v1alpha1.KubernetesApplicationResource) {
			r.OwnerReferences, r.Labels = nil, nil
		})}, sent: []string{list}, requeue: true, event: true},
		"OtherAccount": {reason: "The resource of an earlier account of that name is about to go.", hub: []client.Object{account(), deployment("web", "dev"), stored(t, "dev", func(r *v1alpha1.KubernetesApplicationResource) {
			r.OwnerReferences[0].UID = "u0"
		})}, sent: []string{list}, requeue: true},
		"Malformed": {reason: "No webhook validates an account, so an event tells.", hub: []client.Object{account(func(a *corev1.ServiceAccount) {
			a.Annotations = map[string]string{v1alpha1.AdoptAnnotation: "Perhaps"}
		}), deployment("web", "dev")}, sent: []string{list}, err: reconcile.TerminalError(nil), event: true},
		"ListFails":   {reason: "Without the list nothing is deleted.", hub: []client.Object{account(), stored(t, "dev")}, fail: map[string]error{list: failure}, sent: []string{list}, err: failure},
		"CreateFails": {reason: "A failed write is tried again.", hub: []client.Object{account(), deployment("web", "dev")}, fail: map[string]error{"create " + dev: failure}, sent: []string{list, "create " + dev}, err: failure},
		"DeleteFails": {reason: "A failed deletion is tried again.", hub: []client.Object{account(), stored(t, "dev")}, fail: map[string]error{"delete " + dev: failure}, sent: []string{list, "delete " + dev}, err: failure},
	} {
		t.Run(name, func(t *testing.T) {
			requests, recorder := &reconcilertest.Requests{Fail: tc.fail}, events.NewFakeRecorder(10)
			hub := fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, corev1.AddToScheme, v1alpha1.AddToScheme)).WithObjects(tc.hub...).
				WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.DependencyIndex, index).
				WithInterceptorFuncs(requests.Funcs()).Build()
			result, err := newController(hub, recorder).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(account())})
			if !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v: %s", err, tc.err, tc.reason)
			}
			if (result.RequeueAfter > 0) != tc.requeue {
				t.Errorf("requeue after %s: %s", result.RequeueAfter, tc.reason)
			}
			if diff := cmp.Diff(tc.sent, requests.Sent); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if event := reconcilertest.NextEvent(recorder); (event != "") != tc.event {
				t.Errorf("event %q: %s", event, tc.reason)
			}
		})
	}
}

func TestResourceFor(t *testing.T) {
	got, err := resourceFor(account(func(a *corev1.ServiceAccount) {
		a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		a.Annotations = map[string]string{v1alpha1.AdoptAnnotation: "IfUnowned", "role": "checkout"}
	}), "dev")
	if err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: "checkout.dev-serviceaccount", Finalizers: []string{v1alpha1.PropagationFinalizer},
		Labels:      map[string]string{v1alpha1.FrontDoorLabel: "true", v1alpha1.DependencyLabel: "shared"},
		Annotations: map[string]string{v1alpha1.AdoptAnnotation: "IfUnowned"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ServiceAccount", Name: "checkout", UID: "u1", Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}}
	want.Spec.TargetRef = &v1alpha1.TargetReference{Name: "dev"}
	want.Spec.Dependencies = []v1alpha1.Dependency{{Kind: "Secret", Name: "pull", Optional: true}}
	want.Spec.Template.Raw = []byte(`{"apiVersion":"v1","imagePullSecrets":[{"name":"checkout.dev-serviceaccount-pull"}],"kind":"ServiceAccount","metadata":{"annotations":{"role":"checkout"},"name":"checkout","namespace":"team-a"}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOrphanedStays: an object that needs the account was orphaned on the target.
func TestOrphanedStays(t *testing.T) {
	current, desired := stored(t, "dev"), stored(t, "dev")
	current.Annotations = map[string]string{v1alpha1.DeletionAnnotation: string(v1alpha1.DeletionOrphan), v1alpha1.AdoptAnnotation: "Force", v1alpha1.LeftAnnotation: "true"}
	updateResource(current, desired)
	if diff := cmp.Diff(map[string]string{v1alpha1.DeletionAnnotation: "Orphan"}, current.Annotations); diff != "" {
		t.Errorf("the account stays on the target, and an annotation that the account lost is removed (-want +got):\n%s", diff)
	}
}
