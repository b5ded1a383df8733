package target

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/managedcluster"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/connectionsecret"
	"github.com/portico-io/portico/policies/credentials"
)

const portico = "portico-system"

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "eu"}}

// newTarget returns a target with a Secret or a managed cluster.
func newTarget(secret, cluster string) *v1alpha1.KubernetesTarget {
	out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "eu", UID: "1"}}
	if secret != "" {
		out.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: secret}
	}
	if cluster != "" {
		out.Spec.ClusterRef = &v1alpha1.ClusterReference{APIVersion: "gcp.example.org/v1", Kind: "GKECluster", Name: cluster}
	}
	return out
}

func newSecret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: bytesOf(data)}
}

func bytesOf(data map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for key, value := range data {
		out[key] = []byte(value)
	}
	return out
}

// usable is a connection to an unused address.
var usable = map[string]string{v1alpha1.SecretEndpoint: "https://127.0.0.1:1", v1alpha1.SecretToken: "token"}

// environment is a controller with a fake hub.
type environment struct {
	*Controller
	hub   client.Client
	steps []string
}

var options = connectionsecret.Options{Namespace: portico}

// newEnvironment returns a controller with an empty memory, as in a new process. fail
// returns the error of a request, as "verb type".
func newEnvironment(t *testing.T, fail func(call string) error, objects ...client.Object) *environment {
	t.Helper()
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, corev1.AddToScheme)
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.KubernetesTarget{}).
		WithIndex(metadata, managedcluster.PrivateCopyIndex, managedcluster.IndexPrivateCopy(options)).
		WithIndex(&v1alpha1.KubernetesTarget{}, policies.ConnectionSecretIndex, IndexSecret).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.TargetIndex, func(o client.Object) []string {
			return policies.TargetsOf(o.(*v1alpha1.KubernetesApplicationResource))
		}).
		WithInterceptorFuncs(reconcilertest.Before(func(r reconcilertest.Request) error {
			return fail(cmp.Or(r.Subresource, r.Verb) + " " + r.Type())
		})).Build()
	e := &environment{hub: hub, Controller: &Controller{
		options: Options{Rules: credentials.Rules{AllowLocal: true}, Connections: options, ExpiryWarning: time.Hour, Clock: clock.RealClock{}},
		hub:     hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.TargetManager}, live: hub,
		clusters: clusters.New(clusters.Options{ProbeInterval: time.Hour}), recorder: events.NewFakeRecorder(20),
		changed: make(chan event.TypedGenericEvent[types.NamespacedName], 100), ctx: t.Context(),
	}}
	e.copier = managedcluster.NewCopier(t.Context(), managedcluster.Hub{
		Client: hub, Live: hub, Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), Mapper: meta.NewDefaultRESTMapper(nil),
	}, options, e.TargetChanged)
	return e
}

func (e *environment) reconcile(ctx context.Context) (reconcile.Result, error) {
	log := reconcilertest.Steps(&e.steps)
	return e.Reconcile(ctrl.LoggerInto(ctx, log), request)
}

func succeeds(string) error { return nil }

// synced returns condition Synced of the target, "" if the target does not have it.
func (e *environment) synced(t *testing.T) string {
	t.Helper()
	target := &v1alpha1.KubernetesTarget{}
	if err := e.hub.Get(t.Context(), request.NamespacedName, target); err != nil {
		return ""
	}
	if c := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.Synced); c != nil {
		return string(c.Status) + " " + c.Reason
	}
	return ""
}

// TestReconcile connects a target, or reports the reason why there is no connection.
func TestReconcile(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		objects   []client.Object
		synced    string
		connected bool
		requeues  bool
	}{
		"Usable":   {reason: "A usable Secret gives a connection. Its state is not known yet.", objects: []client.Object{newTarget("own", ""), newSecret("own", usable)}, connected: true, synced: "True Applied"},
		"NoSecret": {reason: "A missing Secret gives no connection.", objects: []client.Object{newTarget("own", "")}, synced: "False SecretMissing"},
		"Unusable": {reason: "A Secret without an endpoint gives no connection.", objects: []client.Object{newTarget("own", ""), newSecret("own", nil)}, synced: "False InvalidConnection"},
		"Unknown":  {reason: "The reason of the managed cluster is reported.", objects: []client.Object{newTarget("", "one")}, synced: "False UnknownKind", requeues: true},
		"Gone":     {reason: "A deleted target needs no work."},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, succeeds, tc.objects...)
			result, err := e.reconcile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, missing := e.clusters.Get(request.NamespacedName)
			if diff := gocmp.Diff([]any{tc.synced, tc.connected, tc.requeues}, []any{e.synced(t), missing == nil, result.RequeueAfter > 0}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if len(tc.objects) == 0 {
				return
			}
			if err := e.hub.Delete(t.Context(), newTarget("", "")); err != nil {
				t.Fatal(err)
			}
			if _, err := e.reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := e.clusters.Get(request.NamespacedName); !errors.Is(err, clusters.ErrUnknown) {
				t.Errorf("after the deletion: %v", err)
			}
		})
	}
}

// TestPrivateCopyOfDeletedTarget starts a process after another process was killed
// between the deletion of a target and the removal of its private copy.
func TestPrivateCopyOfDeletedTarget(t *testing.T) {
	private, _ := options.DesiredPrivateCopy(newTarget("", "one"), nil, bytesOf(usable))
	e := newEnvironment(t, succeeds, private)
	// The first list of the watch of Secrets has the copy.
	if diff := gocmp.Diff([]reconcile.Request{request}, e.targetsOfSecret(t.Context(), private)); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	if _, err := e.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left corev1.SecretList
	if err := e.hub.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("left are %v, error %v", left.Items, err)
	}
}

// TestSteps runs the steps in their order, and returns the error of each call.
func TestSteps(t *testing.T) {
	failure := errors.New("the hub is away")
	private, _ := options.DesiredPrivateCopy(newTarget("", "one"), nil, bytesOf(usable))
	copies := []string{"delete former copies", "read copies", "select copy"} // of the copier
	all := append(append([]string{"read target"}, copies...), "copy connection", "connect", "report")
	present := []client.Object{newTarget("own", ""), newSecret("own", usable)}
	for name, tc := range map[string]struct {
		objects []client.Object
		fail    string
		steps   []string
	}{
		"Connected":  {objects: present, steps: all},
		"Target":     {objects: present, fail: "get KubernetesTarget", steps: all[:1]},
		"Copies":     {objects: present, fail: "list PartialObjectMetadataList", steps: []string{"read target", "delete former copies", "copy connection"}},
		"Connection": {objects: present, fail: "get Secret", steps: all[:6]},
		"Status":     {objects: present, fail: "status KubernetesTarget", steps: all},
		"Deletion":   {objects: []client.Object{private}, fail: "delete PartialObjectMetadata", steps: all[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, func(call string) error {
				if call == tc.fail {
					return failure
				}
				return nil
			}, tc.objects...)
			_, err := e.reconcile(t.Context())
			if errors.Is(err, failure) != (tc.fail != "") || tc.fail == "" && err != nil {
				t.Errorf("error %v", err)
			}
			if diff := gocmp.Diff(tc.steps, e.steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNamespaceDeletion keeps the connection of a deleted target while resources of a
// namespace that is being deleted need it.
func TestNamespaceDeletion(t *testing.T) {
	now := metav1.Now()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", DeletionTimestamp: &now, Finalizers: []string{"kubernetes"}}}
	resource := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	resource.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu"}
	target, secret := newTarget("own", ""), newSecret("own", usable)
	e := newEnvironment(t, succeeds, namespace, resource, target, secret)
	if _, err := e.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{target, secret} {
		if err := e.hub.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	result, err := e.reconcile(t.Context())
	if _, missing := e.clusters.Get(request.NamespacedName); err != nil || missing != nil || result.RequeueAfter == 0 {
		t.Errorf("with a resource: %v, %v, %v", result, err, missing)
	}
	if err := e.hub.Delete(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	result, err = e.reconcile(t.Context())
	if _, missing := e.clusters.Get(request.NamespacedName); err != nil || missing == nil || result.RequeueAfter != 0 {
		t.Errorf("without resources: %v, %v, %v", result, err, missing)
	}
}
