package nativestatus

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
)

var key = client.ObjectKey{Namespace: "team-a", Name: "web"}

// deployment returns a held Deployment.
func deployment(change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	out := kinds.New(kinds.Deployment{})
	out.SetNamespace(key.Namespace)
	out.SetName(key.Name)
	out.SetUID("web-uid")
	out.SetGeneration(4)
	out.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
	out.Object["spec"] = map[string]any{
		"replicas": int64(2),
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}}},
	}
	for _, c := range change {
		c(out)
	}
	return out
}

func replicaSet() *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: "web-5d4f", Generation: 1, Labels: map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment(), kinds.Deployment{}.GroupVersionKind())},
	}}
}

// resource returns a resource with a status from the target.
func resource(remote string, change ...func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
	out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: "web-deployment",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment(), kinds.Deployment{}.GroupVersionKind())},
	}}
	out.Status.ObservedHubGeneration = 4
	if remote != "" {
		out.Status.Remote = &apiextensionsv1.JSON{Raw: []byte(remote)}
	}
	for _, c := range change {
		c(out)
	}
	return out
}

func fakeHub(t *testing.T, requests *reconcilertest.Requests, objects ...client.Object) client.Client {
	t.Helper()
	scheme := reconcilertest.Scheme(t, clientgoscheme.AddToScheme, v1alpha1.AddToScheme)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(requests.Funcs()).
		WithIndex(kinds.New(kinds.ReplicaSet{}), OwnerIndex, IndexOwner).
		WithStatusSubresource(&appsv1.Deployment{}, &appsv1.ReplicaSet{}).Build()
}

// progressing sets the readiness of a rollout that began some time ago.
func progressing(ago time.Duration) func(*v1alpha1.KubernetesApplicationResource) {
	return func(r *v1alpha1.KubernetesApplicationResource) {
		r.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.Ready, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProgressing, LastTransitionTime: metav1.NewTime(time.Now().Add(-ago)),
		}}
	}
}

const oneReady = `{"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}`

const twoReady = `{"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}`

// TestReconcile tests the order of requests, and failing requests.
func TestReconcile(t *testing.T) {
	failure := errors.New("failure")
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
	list, patchRS, patch := "list "+OwnerIndex, "patch status of web-5d4f", "patch status of web"
	deleting := func(o *unstructured.Unstructured) {
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
		o.SetFinalizers([]string{"example.org/keep"})
	}
	cases := map[string]struct {
		reason   string
		hub      []client.Object
		fail     map[string]error
		sent     []string
		ready    int64 // of the Deployment
		err      error
		terminal bool
		requeue  bool
		warning  string
	}{
		"Gone": {reason: "A deleted object has no status."},
		"NotRemote": {reason: "An object of the hub keeps its status.", hub: []client.Object{
			deployment(func(o *unstructured.Unstructured) { o.SetLabels(nil) }), resource(twoReady)}},
		"Deleting":   {reason: "An object that is being deleted keeps its status.", hub: []client.Object{deployment(deleting), resource(twoReady)}},
		"NoResource": {reason: "Without a resource there is nothing to write.", hub: []client.Object{deployment()}},
		"NotOurs": {reason: "The resource of another owner says nothing about this object.", hub: []client.Object{
			deployment(), resource(twoReady, func(r *v1alpha1.KubernetesApplicationResource) { r.OwnerReferences[0].UID = "other" })}},
		"NotHeld": {reason: "A Deployment that still runs on the hub keeps its status.", hub: []client.Object{
			deployment(func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata")
			}), resource(twoReady)}},
		"Ready": {reason: "The ReplicaSet comes before the Deployment.", hub: []client.Object{deployment(), replicaSet(), resource(twoReady)},
			sent: []string{list, patchRS, patch}, ready: 2},
		"Rollout": {reason: "The ReplicaSets of a short rollout are written at its end.", hub: []client.Object{deployment(), replicaSet(), resource(oneReady, progressing(0))},
			sent: []string{patch}, requeue: true},
		"LongRollout": {reason: "The ReplicaSets of a long rollout are written before its end.", hub: []client.Object{deployment(), replicaSet(), resource(oneReady, progressing(time.Minute))},
			sent: []string{list, patchRS, patch}},
		"Unreported": {reason: "Without a status of the target there is no status of the ReplicaSets.", hub: []client.Object{deployment(), replicaSet(), resource("")},
			sent: []string{patch}},
		"Edited": {reason: "The ready Pods of an earlier generation are not those of the newest ReplicaSet.", hub: []client.Object{
			deployment(), replicaSet(), resource(twoReady, func(r *v1alpha1.KubernetesApplicationResource) { r.Status.ObservedHubGeneration = 3 })},
			sent: []string{patch}},
		"ListFails": {reason: "A Deployment must not look complete before its ReplicaSets.", hub: []client.Object{deployment(), replicaSet(), resource(twoReady)},
			fail: map[string]error{list: failure}, sent: []string{list}, err: failure},
		"ReplicaSetFails": {reason: "The Deployment waits until all ReplicaSets are written.", hub: []client.Object{deployment(), replicaSet(), resource(twoReady)},
			fail: map[string]error{patchRS: failure}, sent: []string{list, patchRS}, err: failure},
		"StatusFails": {reason: "A failed write is tried again.", hub: []client.Object{deployment(), resource(twoReady)},
			fail: map[string]error{patch: failure}, sent: []string{list, patch}, err: failure},
		"StatusRejected": {reason: "The hub would reject the write again, so the user gets an event.", hub: []client.Object{deployment(), resource(twoReady)},
			fail: map[string]error{patch: invalid}, sent: []string{list, patch}, terminal: true, warning: "it does not have the form of a status of this kind"},
		"NotAnObject": {reason: "The target may report anything.", hub: []client.Object{deployment(), resource(`"ready"`)},
			terminal: true, warning: "it is not an object"},
		"WrongType": {reason: "The status of another kind does not fit.", hub: []client.Object{deployment(), resource(`{"replicas": "two"}`)},
			sent: []string{list}, terminal: true, warning: "unreadable status"},
		"OutOfRange": {reason: "A number out of range is not truncated.", hub: []client.Object{deployment(), resource(`{"replicas": 4294967298}`)},
			sent: []string{list}, terminal: true, warning: "unreadable status"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requests := &reconcilertest.Requests{Fail: tc.fail}
			hub := fakeHub(t, requests, tc.hub...)
			recorder := events.NewFakeRecorder(10)
			c := New(hub, kinds.Deployment{}, recorder)
			result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if (result.RequeueAfter > 0) != tc.requeue {
				t.Errorf("requeue after %s: %s", result.RequeueAfter, tc.reason)
			}
			if terminal := errors.Is(err, reconcile.TerminalError(nil)); terminal != tc.terminal || !tc.terminal && !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v, terminal %t: %s", err, tc.err, tc.terminal, tc.reason)
			}
			if diff := cmp.Diff(tc.sent, requests.Sent); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			emitted := reconcilertest.NextEvent(recorder)
			if (emitted != "") != (tc.warning != "") || !strings.Contains(emitted, tc.warning) {
				t.Errorf("event %q, want %q: %s", emitted, tc.warning, tc.reason)
			}
			if tc.ready > 0 {
				expectReady(t, hub, tc.ready)
				requests.Sent = nil
				if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{list}, requests.Sent); diff != "" {
					t.Errorf("a second reconcile changes nothing (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// expectReady compares the statuses of the Deployment and its ReplicaSet.
func expectReady(t *testing.T, hub client.Client, want int64) {
	t.Helper()
	stored := kinds.New(kinds.Deployment{})
	if err := hub.Get(t.Context(), key, stored); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedInt64(stored.Object, "status", "readyReplicas"); got != want {
		t.Errorf("%d replicas of the Deployment are ready, want %d", got, want)
	}
	if got, _, _ := unstructured.NestedInt64(stored.Object, "status", "observedGeneration"); got != stored.GetGeneration() {
		t.Errorf("the observed generation is %d, want %d", got, stored.GetGeneration())
	}
	rs := replicaSet()
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(rs), rs); err != nil {
		t.Fatal(err)
	}
	if int64(rs.Status.ReadyReplicas) != want {
		t.Errorf("%d replicas of the ReplicaSet are ready, want %d", rs.Status.ReadyReplicas, want)
	}
}

func TestNativeOf(t *testing.T) {
	c := New(nil, kinds.Deployment{}, nil)
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: key}}, c.nativeOf(t.Context(), resource(""))); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	other := resource("", func(r *v1alpha1.KubernetesApplicationResource) { r.OwnerReferences[0].Kind = "Service" })
	if got := c.nativeOf(t.Context(), other); got != nil {
		t.Errorf("the resource of a Service queues %v", got)
	}
	if diff := cmp.Diff([]string{"web-uid"}, IndexOwner(replicaSet())); diff != "" || IndexOwner(resource("", func(r *v1alpha1.KubernetesApplicationResource) { r.OwnerReferences = nil })) != nil {
		t.Errorf("index (-want +got):\n%s", diff)
	}
}

// TestDescribeRejection: the message of the API server quotes the whole object.
func TestDescribeRejection(t *testing.T) {
	invalid := &apierrors.StatusError{ErrStatus: metav1.Status{Message: "SECRET", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
		{Field: "status.replicas", Message: "must be positive"}, {Field: "spec", Message: "SECRET"},
	}}}}
	if got, want := describeRejection(invalid), "status.replicas: must be positive"; got != want {
		t.Errorf("described as %q, want %q", got, want)
	}
}
