package intake

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

// remote returns a held Deployment with the label.
func remote(change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	out := native("web")
	out.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote, v1alpha1.ApplicationLabel: "shop"})
	out.Object["spec"] = map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web", v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx:1"}}},
		},
	}
	for _, c := range change {
		c(out)
	}
	return out
}

// TestReconcile tests the order of requests, and failing requests.
func TestReconcile(t *testing.T) {
	failure := errors.New("failure")
	local := func(o *unstructured.Unstructured) { o.SetLabels(nil) }
	available := func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{"replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1),
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}}}
	}
	stored := resourceOf("web", "eu-1") // an older projection
	other := resourceOf("web", "")
	other.OwnerReferences, other.Labels = nil, nil

	list := "list " + policies.ApplicationIndex
	cases := map[string]struct {
		reason   string
		hub      []client.Object
		fail     map[string]error
		sent     []string
		err      error
		terminal bool
		requeue  bool
		event    string
	}{
		"Gone": {reason: "A deleted object needs no work."},
		"New": {reason: "The application comes before the resource.", hub: []client.Object{remote(), stored},
			sent: []string{list, "create shop", "patch web-deployment"}},
		"Joins": {reason: "An application that agrees is not written.", hub: []client.Object{remote(), stored, shopOf("eu-1")},
			sent: []string{"patch web-deployment"}},
		"ListFails": {reason: "Without the members the application would lose its target.", hub: []client.Object{remote(), stored},
			fail: map[string]error{list: failure}, err: failure, sent: []string{list}},
		"ApplicationFails": {reason: "Without an application there is no resource.", hub: []client.Object{remote(), stored},
			fail: map[string]error{"create shop": failure}, err: failure, sent: []string{list, "create shop"}},
		"ResourceFails": {reason: "A failed write is tried again.", hub: []client.Object{remote(), stored, shopOf("eu-1")},
			fail: map[string]error{"patch web-deployment": failure}, err: failure, sent: []string{"patch web-deployment"}},
		"NameTaken": {reason: "The resource of a user is not touched, and no event tells when its name is free.",
			hub: []client.Object{remote(), other, shopOf("eu-1")}, requeue: true, event: v1alpha1.EventNameTaken},
		"Malformed": {reason: "A retry does not help an object that cannot be parsed.",
			hub: []client.Object{remote(func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{v1alpha1.TargetSelectorAnnotation: "in in in"})
			})}, terminal: true, event: v1alpha1.ReasonRefused},
		"NeverRemote": {reason: "An object without a resource is on the hub already.", hub: []client.Object{remote(local)}},
		"Returns": {reason: "The resource is deleted once the Deployment is available on the hub.", hub: []client.Object{remote(local, available), stored},
			sent: []string{"delete web-deployment"}, event: v1alpha1.EventMovedToHub},
		"ReturnsLater": {reason: "The resource stays until the Deployment is available on the hub.", hub: []client.Object{remote(local), stored}, requeue: true},
		"ReturnFails": {reason: "A failed deletion is tried again, without an event.", hub: []client.Object{remote(local, available), stored},
			fail: map[string]error{"delete web-deployment": failure}, err: failure, sent: []string{"delete web-deployment"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requests := &reconcilertest.Requests{Fail: tc.fail}
			recorder := events.NewFakeRecorder(10)
			hub := fakeHub(t, requests, tc.hub...)
			c := newController(hub, hub, kinds.Deployment{}, recorder)
			result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(native("web"))})
			if terminal := errors.Is(err, reconcile.TerminalError(nil)); terminal != tc.terminal || !tc.terminal && !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v, terminal %t: %s", err, tc.err, tc.terminal, tc.reason)
			}
			if (result.RequeueAfter > 0) != tc.requeue {
				t.Errorf("requeue after %s: %s", result.RequeueAfter, tc.reason)
			}
			if diff := cmp.Diff(tc.sent, requests.Sent); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			emitted := reconcilertest.NextEvent(recorder)
			if (emitted != "") != (tc.event != "") || !strings.Contains(emitted, tc.event) {
				t.Errorf("event %q, want %q: %s", emitted, tc.event, tc.reason)
			}
		})
	}
}

// shopOf returns the application of Deployment web.
func shopOf(target string) *v1alpha2.KubernetesApplication {
	app := applicationFor("team-a", policies.Membership{Application: "shop"})
	app.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	return app
}

func fakeHub(t *testing.T, requests *reconcilertest.Requests, objects ...client.Object) client.Client {
	t.Helper()
	scheme := reconcilertest.Scheme(t, clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(requests.Funcs()).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, func(o client.Object) []string { return policies.ApplicationKeys(o) }).
		WithIndex(kinds.New(kinds.Deployment{}), serviceAccountIndex, indexServiceAccount).
		WithStatusSubresource(&appsv1.Deployment{}).Build()
}

// TestUsersOfServiceAccount finds Deployments by an index.
func TestUsersOfServiceAccount(t *testing.T) {
	other := remote(func(o *unstructured.Unstructured) {
		o.SetName("db")
		if err := unstructured.SetNestedField(o.Object, "db", "spec", "template", "spec", "serviceAccountName"); err != nil {
			t.Fatal(err)
		}
	})
	requests := &reconcilertest.Requests{}
	hub := fakeHub(t, requests, remote(), other)
	c := newController(hub, hub, kinds.Deployment{}, events.NewFakeRecorder(1))
	for account, user := range map[string]string{"default": "web", "db": "db"} {
		got := c.listNatives(t.Context(), client.InNamespace("team-a"), client.MatchingFields{serviceAccountIndex: account})
		want := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "team-a", Name: user}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("users of %s (-want +got):\n%s", account, diff)
		}
	}
	if diff := cmp.Diff([]string{"list " + serviceAccountIndex, "list " + serviceAccountIndex}, requests.Sent); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestCreateOnce reconciles an object twice before the cache has its resource.
func TestCreateOnce(t *testing.T) {
	scheme := reconcilertest.Scheme(t, clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme)
	creates := 0
	hub := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(reconcilertest.Before(func(request reconcilertest.Request) error {
		if _, isResource := request.Object.(*v1alpha1.KubernetesApplicationResource); !isResource {
			return nil
		}
		if request.Verb == "create" {
			creates++
		}
		return apierrors.NewNotFound(schema.GroupResource{Resource: "kubernetesapplicationresources"}, request.Key.Name) // the cache is behind
	})).Build()
	c := newController(hub, hub, kinds.Deployment{}, events.NewFakeRecorder(100))
	s := &scope{native: remote(), desired: resourceOf("web", "")}
	c.created.recent.Set(s.native.GetUID(), nil, maxCacheLag)
	if err := c.ensureResource(t.Context(), s); creates != 0 || err == nil || !reconciler.IsEnd(err) {
		t.Errorf("%d creations, error %v; the resource was created a moment ago", creates, err)
	}
	s.native.SetUID("another")
	if err := c.ensureResource(t.Context(), s); creates != 1 || !apierrors.IsNotFound(err) {
		t.Errorf("%d creations, error %v; another object has no resource", creates, err)
	}
	if _, found := c.created.recent.Get(s.native.GetUID()); found {
		t.Error("a failed creation is not repeated")
	}
}

// TestPatchOnce patches a resource twice before the cache has the first patch.
func TestPatchOnce(t *testing.T) {
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme)
	stored := resourceOf("web", "")
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).Build()
	written, writer := newCreated(), reconciler.Writer{Client: hub, Owner: v1alpha1.IntakeManager}
	patch := func(before *v1alpha1.KubernetesApplicationResource, tier string) (*v1alpha1.KubernetesApplicationResource, error) {
		after := before.DeepCopy()
		after.Labels = map[string]string{"tier": tier}
		return after, written.patchOnce(t.Context(), writer, "u1", before, after)
	}
	before := &v1alpha1.KubernetesApplicationResource{}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(stored), before); err != nil {
		t.Fatal(err)
	}
	first, err := patch(before, "web")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := patch(before, "cache"); err == nil || !reconciler.IsEnd(err) {
		t.Errorf("want a requeue while the cache is behind, got %v", err)
	}
	if _, err := patch(first, "cache"); err != nil {
		t.Errorf("patching what the cache has: %v", err)
	}
}
