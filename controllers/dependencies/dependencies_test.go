package dependencies

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	out, err := newController(all[0], nil, nil).resourceFor(t.Context(), account(), placement{target: target})
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
			result, err := newController(all[0], hub, recorder).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(account())})
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
	got, err := newController(all[0], fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, v1alpha1.AddToScheme)).Build(), nil).resourceFor(t.Context(), account(func(a *corev1.ServiceAccount) {
		a.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		a.Annotations = map[string]string{v1alpha1.AdoptAnnotation: "IfUnowned", "role": "checkout"}
	}), placement{target: "dev"})
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
	want.Spec.Dependencies = []v1alpha1.Dependency{{Kind: "Secret", Name: "pull", Optional: true, Shared: true}}
	want.Spec.Template.Raw = []byte(`{"apiVersion":"v1","imagePullSecrets":[{"name":"pull"}],"kind":"ServiceAccount","metadata":{"annotations":{"role":"checkout"},"name":"checkout","namespace":"team-a"}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOrphanedRemains: an object that needs the account was orphaned on the target.
func TestOrphanedRemains(t *testing.T) {
	current, desired := stored(t, "dev"), stored(t, "dev")
	current.Annotations = map[string]string{v1alpha1.DeletionAnnotation: string(v1alpha1.DeletionOrphan), v1alpha1.AdoptAnnotation: "Force", v1alpha1.LeftAnnotation: "true"}
	updateResource(current, desired)
	if diff := cmp.Diff(map[string]string{v1alpha1.DeletionAnnotation: "Orphan"}, current.Annotations); diff != "" {
		t.Errorf("the account stays on the target, and an annotation that the account lost is removed (-want +got):\n%s", diff)
	}
}

// TestResourceForContent shows that the resource of a Secret has neither its data nor its
// annotations, in which tools keep the data.
func TestResourceForContent(t *testing.T) {
	secret := all[3].empty()
	secret.SetNamespace("team-a")
	secret.SetName("sql")
	secret.SetUID("s1")
	secret.SetLabels(map[string]string{"team": "a", v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
	secret.SetAnnotations(map[string]string{"note": "first", corev1.LastAppliedConfigAnnotation: "first"})
	adopting := deployment("web", "dev")
	adopting.Annotations = map[string]string{v1alpha1.AdoptAnnotation: "Force"}
	got, err := newController(all[3], nil, nil).resourceFor(t.Context(), secret, placement{target: "dev", dependents: []v1alpha1.KubernetesApplicationResource{*adopting}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"apiVersion":"v1","kind":"Secret","metadata":{"labels":{"team":"a"},"name":"sql","namespace":"team-a"}}`; string(got.Spec.Template.Raw) != want {
		t.Errorf("want the template %s\n got %s", want, got.Spec.Template.Raw)
	}
	if errs := policies.ValidateResource(got, nil); len(errs) > 0 {
		t.Errorf("the resource is not valid: %v", errs)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.AdoptAnnotation: string(v1alpha1.AdoptIfUnowned)}, got.Annotations); diff != "" {
		t.Errorf("a dependency is adopted only if it has no owner (-want +got):\n%s", diff)
	}
}

// TestRBAC is about account checkout on target dev, where Roles are to be sent, and on
// target prod, where they are not.
func TestRBAC(t *testing.T) {
	binding := func(name, role, kind string, accounts ...string) client.Object {
		out := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}}
		for _, account := range accounts {
			out.Subjects = append(out.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "team-a", Name: account})
		}
		return out
	}
	hub := fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, corev1.AddToScheme, rbacv1.AddToScheme)).
		WithIndex(&rbacv1.RoleBinding{}, policies.SubjectIndex, IndexSubjects).
		WithObjects(binding("two", "writer", "Role", "checkout"), binding("one", "reader", "Role", "checkout", "other"), binding("same", "reader", "Role", "checkout"),
			binding("cluster", "admin", "ClusterRole", "checkout"), binding("others", "reader", "Role", "other")).Build()
	dev, prod := deployment("web", "dev"), deployment("web", "prod")
	dev.Spec.Dependencies[0].RBAC = true
	for target, want := range map[string][]v1alpha1.Dependency{"prod": nil, "dev": {
		{Kind: "Role", Name: "reader", Shared: true}, {Kind: "RoleBinding", Name: "one", Shared: true}, {Kind: "RoleBinding", Name: "same", Shared: true},
		{Kind: "Role", Name: "writer", Shared: true}, {Kind: "RoleBinding", Name: "two", Shared: true},
	}} {
		dependents := policies.ResourcesOnTarget(target, []v1alpha1.KubernetesApplicationResource{*dev, *prod})
		got, err := newController(all[0], hub, nil).resourceFor(t.Context(), account(), placement{target: target, dependents: dependents})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Spec.Dependencies); diff != "" {
			t.Errorf("target %s (-want +got):\n%s", target, diff)
		}
	}

	// The RoleBinding on a target has the accounts that need it there.
	sent := stored(t, "dev")
	got, err := newController(all[2], hub, nil).resourceFor(t.Context(), binding("one", "reader", "Role", "checkout", "other"), placement{target: "dev", dependents: []v1alpha1.KubernetesApplicationResource{*sent, *dev}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"one","namespace":"team-a"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"},"subjects":[{"kind":"ServiceAccount","name":"checkout","namespace":"team-a"}]}`
	if diff := cmp.Diff(want, string(got.Spec.Template.Raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
