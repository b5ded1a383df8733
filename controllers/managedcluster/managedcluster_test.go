package managedcluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies/connectionsecret"
)

const portico = "portico-system"

var (
	kind     = schema.GroupVersionKind{Group: "gcp.example.org", Version: "v1", Kind: "GKECluster"}
	resource = kind.GroupVersion().WithResource("gkeclusters")
	key      = types.NamespacedName{Namespace: "team", Name: "eu"}
)

func target(edits ...func(*v1alpha1.KubernetesTarget)) *v1alpha1.KubernetesTarget {
	out := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "1"}}
	out.Spec.ClusterRef = &v1alpha1.ClusterReference{APIVersion: "gcp.example.org/v1", Kind: kind.Kind, Name: "one"}
	for _, edit := range edits {
		edit(out)
	}
	return out
}

func private(t *v1alpha1.KubernetesTarget) { t.Spec.Connection = v1alpha1.ConnectionPrivate }

func deleted(t *v1alpha1.KubernetesTarget) {
	now := metav1.Now()
	t.DeletionTimestamp, t.Finalizers = &now, []string{"example.org/other"}
}

func otherCluster(t *v1alpha1.KubernetesTarget) { t.Spec.ClusterRef.Name = "two" }

func withoutCluster(t *v1alpha1.KubernetesTarget) { t.Spec.ClusterRef = nil }

// copied sets the reference as Portico does.
func copied(t *v1alpha1.KubernetesTarget) {
	t.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: connectionsecret.CopyKey(t).Name}
}

func bound(name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"writeConnectionSecretToRef": map[string]any{"namespace": "crossplane", "name": name}},
		"status": map[string]any{"bindingPhase": "Bound"},
	}}
	out.SetGroupVersionKind(kind)
	out.SetName(name)
	out.SetUID(types.UID("cluster-" + name))
	return out
}

func source(name, endpoint string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane", Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "gcp.example.org/v1", Kind: kind.Kind, Name: name, UID: types.UID("cluster-" + name), Controller: ptr.To(true)},
		}},
		Data: map[string][]byte{v1alpha1.SecretEndpoint: []byte(endpoint), "other": []byte("not a part of a connection")},
	}
}

var options = connectionsecret.Options{Namespace: portico}

// sharedCopy and privateCopy return the copies of a target as Portico makes them.
func sharedCopy(of *v1alpha1.KubernetesTarget) *corev1.Secret {
	out, _ := connectionsecret.DesiredCopy(of, nil, map[string][]byte{v1alpha1.SecretEndpoint: []byte("https://one")})
	return out
}

func privateCopy(of *v1alpha1.KubernetesTarget) *corev1.Secret {
	out, _ := options.DesiredPrivateCopy(of, nil, map[string][]byte{v1alpha1.SecretEndpoint: []byte("https://one")})
	return out
}

// environment is a copier with a fake hub.
type environment struct {
	*Copier
	hub     client.Client
	dynamic *dynamicfake.FakeDynamicClient
	// fail returns the error of a call to the hub, as "verb kind".
	fail  func(call string) error
	steps []string
}

func newEnvironment(t *testing.T, clusters []*unstructured.Unstructured, objects ...client.Object) *environment {
	t.Helper()
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, corev1.AddToScheme)
	e := &environment{fail: func(string) error { return nil }}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	e.hub = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(metadata, PrivateCopyIndex, IndexPrivateCopy(options)).
		WithInterceptorFuncs(reconcilertest.Before(func(r reconcilertest.Request) error { return e.fail(r.Verb + " " + r.Type()) })).Build()
	var existing []runtime.Object
	for _, cluster := range clusters {
		existing = append(existing, cluster)
	}
	e.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "GKEClusterList"}, existing...)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, meta.RESTScopeRoot)
	e.Copier = NewCopier(t.Context(), Hub{Client: e.hub, Live: e.hub, Dynamic: e.dynamic, Mapper: mapper}, options, func(types.NamespacedName) {})
	return e
}

// reconcile runs one reconcile of the target on the hub, and records its steps.
func (e *environment) reconcile(ctx context.Context) (Result, error) {
	log := reconcilertest.Steps(&e.steps)
	on := &v1alpha1.KubernetesTarget{}
	if err := e.hub.Get(ctx, key, on); err != nil {
		return Result{}, err
	}
	return e.Reconcile(ctrl.LoggerInto(ctx, log), on)
}

// describe returns the target's reference, and a line for each copy on the hub.
func (e *environment) describe(t *testing.T) []string {
	t.Helper()
	var out []string
	on := &v1alpha1.KubernetesTarget{}
	if err := e.hub.Get(t.Context(), key, on); err == nil && on.Spec.ConnectionSecretRef != nil {
		out = append(out, "names "+on.Spec.ConnectionSecretRef.Name)
	}
	var secrets corev1.SecretList
	if err := e.hub.List(t.Context(), &secrets); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		if secret.Namespace == "crossplane" {
			continue
		}
		name := secret.Name
		if secret.Namespace == portico {
			name = "private"
		}
		out = append(out, fmt.Sprintf("%s %s %d keys", name, secret.Data[v1alpha1.SecretEndpoint], len(secret.Data)))
	}
	return out
}

// TestReconcile makes the copies of a target equal to its managed cluster's Secret.
func TestReconcile(t *testing.T) {
	all := []string{"delete former copies", "read copies", "select copy", "read connection", "check owner", "write copy", "reference copy", "delete other copy"}
	ready := []client.Object{source("one", "https://one")}
	cases := map[string]struct {
		reason   string
		target   *v1alpha1.KubernetesTarget
		clusters []*unstructured.Unstructured
		objects  []client.Object
		want     []string
		refusal  string
		requeues bool
		steps    int
	}{
		"Shared": {reason: "The copy is in the target's namespace, and has only the keys of a connection.", target: target(), clusters: []*unstructured.Unstructured{bound("one")}, objects: ready,
			want: []string{"names eu-connection", "eu-connection https://one 1 keys"}, steps: 8},
		"Private": {reason: "A private copy is in Portico's namespace, and no object names it.", target: target(private), clusters: []*unstructured.Unstructured{bound("one")}, objects: ready,
			want: []string{"private https://one 1 keys"}, steps: 8},
		"BecomesPrivate": {reason: "The copy in the target's namespace is deleted.", target: target(private, copied), clusters: []*unstructured.Unstructured{bound("one")}, objects: append(ready, sharedCopy(target())),
			want: []string{"private https://one 1 keys"}, steps: 8},
		"BecomesShared": {reason: "The private copy is deleted.", target: target(), clusters: []*unstructured.Unstructured{bound("one")}, objects: append(ready, privateCopy(target())),
			want: []string{"names eu-connection", "eu-connection https://one 1 keys"}, steps: 8},
		"Rotated": {reason: "A copy follows its source.", target: target(copied), clusters: []*unstructured.Unstructured{bound("one")}, objects: []client.Object{source("one", "https://new"), sharedCopy(target())},
			want: []string{"names eu-connection", "eu-connection https://new 1 keys"}, steps: 8},
		"Own": {reason: "A target with a Secret of its user gets no copy.", target: target(func(t *v1alpha1.KubernetesTarget) {
			t.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: "own"}
		}), objects: []client.Object{privateCopy(target())}, want: []string{"names own"}, steps: 3},
		"NoCluster": {reason: "A target without a managed cluster gets no copy.", target: target(withoutCluster), steps: 3},
		"Deleting":  {reason: "A target that is being deleted keeps its copy.", target: target(private, deleted), objects: []client.Object{privateCopy(target())}, want: []string{"private https://one 1 keys"}, steps: 3},
		"Missing":   {reason: "A cluster that does not exist has no connection.", target: target(), refusal: v1alpha1.ReasonClusterMissing, steps: 4},
		"MissingCopied": {reason: "An existing copy is kept if the cluster is missing.", target: target(copied), objects: []client.Object{sharedCopy(target())}, refusal: v1alpha1.ReasonClusterMissing,
			want: []string{"names eu-connection", "eu-connection https://one 1 keys"}, steps: 4},
		"MissingMoved": {reason: "An existing copy moves if the cluster is missing.", target: target(private, copied), objects: []client.Object{sharedCopy(target())}, refusal: v1alpha1.ReasonClusterMissing,
			want: []string{"private https://one 1 keys"}, steps: 8},
		"OtherCluster": {reason: "The copy of another cluster is deleted.", target: target(copied, otherCluster), objects: []client.Object{sharedCopy(target())}, refusal: v1alpha1.ReasonClusterMissing,
			want: []string{"names eu-connection"}, steps: 4},
		"NotControlled": {reason: "A Secret of another resource is not copied.", target: target(), clusters: []*unstructured.Unstructured{bound("one")},
			objects: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane", Name: "one"}}}, refusal: v1alpha1.ReasonSecretNotControlled, steps: 4},
		"NoSecret": {reason: "A missing Secret is not copied.", target: target(), clusters: []*unstructured.Unstructured{bound("one")}, refusal: v1alpha1.ReasonSecretMissing, steps: 4},
		"UnknownKind": {reason: "No event tells when the kind is served.", target: target(func(t *v1alpha1.KubernetesTarget) { t.Spec.ClusterRef.Kind = "EKSCluster" }),
			refusal: v1alpha1.ReasonUnknownKind, requeues: true, steps: 4},
		"NameTaken": {reason: "Another object of the copy's name is not changed.", target: target(), clusters: []*unstructured.Unstructured{bound("one")},
			objects: append(ready, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "eu-connection"}}), refusal: v1alpha1.ReasonOwnershipConflict,
			want: []string{"eu-connection  0 keys"}, steps: 5},
		"Predecessor": {reason: "The copy of a former target is about to be deleted.", target: target(), clusters: []*unstructured.Unstructured{bound("one")},
			objects: append(ready, sharedCopy(target(func(t *v1alpha1.KubernetesTarget) { t.UID = "0" }))), requeues: true,
			want: []string{"eu-connection https://one 1 keys"}, steps: 5},
		"FormerPrivate": {reason: "A private copy of a former target is deleted.", target: target(), clusters: []*unstructured.Unstructured{bound("one")},
			objects: append(ready, privateCopy(target(func(t *v1alpha1.KubernetesTarget) { t.UID = "0" }))),
			want:    []string{"names eu-connection", "eu-connection https://one 1 keys"}, steps: 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, tc.clusters, append([]client.Object{tc.target}, tc.objects...)...)
			result, err := e.reconcile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			refusal := ""
			if result.Refusal != nil {
				refusal = result.Refusal.Reason
			}
			if diff := gocmp.Diff([]any{tc.want, tc.refusal, tc.requeues, all[:tc.steps]}, []any{e.describe(t), refusal, result.RequeueAfter > 0, e.steps}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			e.fail = func(call string) error {
				if verb, _, _ := strings.Cut(call, " "); verb != "get" && verb != "list" {
					t.Errorf("%s: a second reconcile writes: %s", tc.reason, call)
				}
				return nil
			}
			if _, err := e.reconcile(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestErrors returns the error of each call, and reports a denial of the hub.
func TestErrors(t *testing.T) {
	failure := errors.New("the hub is away")
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "demo", failure)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for call, tc := range map[string]struct {
		target  *v1alpha1.KubernetesTarget
		objects []client.Object
		answer  error
		refusal string
		ends    bool // the reconcile ends without an error
	}{
		"list PartialObjectMetadataList": {target: target(), answer: failure},
		"get PartialObjectMetadata":      {target: target(), answer: failure},
		"get Secret":                     {target: target(), answer: failure},
		"create Secret":                  {target: target(), answer: failure},
		"create Secret denied":           {target: target(), answer: apierrors.NewForbidden(schema.GroupResource{}, "demo", failure), refusal: v1alpha1.ReasonRefused, ends: true},
		"create Secret terminating":      {target: target(), answer: terminating, ends: true},
		"patch Secret":                   {target: target(copied), objects: []client.Object{sharedCopy(target(otherCluster))}, answer: failure},
		"patch KubernetesTarget":         {target: target(), answer: failure},
		"delete Secret":                  {target: target(), objects: []client.Object{privateCopy(target())}, answer: failure},
		"delete PartialObjectMetadata":   {target: target(), objects: []client.Object{privateCopy(target(func(t *v1alpha1.KubernetesTarget) { t.UID = "0" }))}, answer: failure},
	} {
		t.Run(call, func(t *testing.T) {
			e := newEnvironment(t, []*unstructured.Unstructured{bound("one")}, append([]client.Object{tc.target, source("one", "https://one")}, tc.objects...)...)
			e.fail = func(got string) error {
				if strings.HasPrefix(call+" ", got+" ") {
					return tc.answer
				}
				return nil
			}
			result, err := e.reconcile(t.Context())
			refusal := ""
			if result.Refusal != nil {
				refusal = result.Refusal.Reason
			}
			if tc.ends != (err == nil) || !tc.ends && !errors.Is(err, tc.answer) || refusal != tc.refusal {
				t.Errorf("error %v, refusal %q", err, refusal)
			}
		})
	}
	t.Run("get GKECluster", func(t *testing.T) {
		for _, tc := range []struct {
			answer  error
			refusal string
		}{
			{answer: failure},
			{answer: apierrors.NewForbidden(resource.GroupResource(), "one", failure), refusal: v1alpha1.ReasonPermissionMissing},
		} {
			e := newEnvironment(t, []*unstructured.Unstructured{bound("one")}, target(), source("one", "https://one"))
			e.dynamic.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.answer })
			result, err := e.reconcile(t.Context())
			if tc.refusal == "" && !errors.Is(err, failure) || tc.refusal != "" && (err != nil || result.Refusal == nil || result.Refusal.Reason != tc.refusal || result.RequeueAfter == 0) {
				t.Errorf("result %+v, error %v", result, err)
			}
		}
	})
}

// TestDeletePrivateCopies deletes the copies of a deleted target, also those of another
// process.
func TestDeletePrivateCopies(t *testing.T) {
	other := target(func(t *v1alpha1.KubernetesTarget) { t.Name = "us" })
	e := newEnvironment(t, nil, privateCopy(target()), privateCopy(other))
	if err := e.DeletePrivateCopies(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	var left corev1.SecretList
	if err := e.hub.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 1 || options.TargetOfPrivateCopy(&left.Items[0]).Name != "us" {
		t.Errorf("left are %v", left.Items)
	}
}

// TestDependencies maps changes of Secrets, clusters and definitions to the target.
func TestDependencies(t *testing.T) {
	e := newEnvironment(t, []*unstructured.Unstructured{bound("one")}, target(), source("one", "https://one"))
	if _, err := e.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	mapped := func() [][]types.NamespacedName {
		return [][]types.NamespacedName{
			e.TargetsOfSecret(types.NamespacedName{Namespace: "crossplane", Name: "one"}), e.TargetsOfSecret(connectionsecret.CopyKey(target())),
			e.TargetsOfDefinition("gkeclusters.gcp.example.org"), e.targetsOfCluster(types.NamespacedName{Name: "one"}),
		}
	}
	for i, got := range mapped() {
		if diff := gocmp.Diff([]types.NamespacedName{key}, got); diff != "" {
			t.Errorf("dependency %d (-want +got):\n%s", i, diff)
		}
	}
	e.StopWatching(key)
	for i, got := range mapped() {
		if len(got) > 0 {
			t.Errorf("dependency %d is kept", i)
		}
	}
	if running := e.watches.Running(); len(running) > 0 {
		t.Errorf("%v are watched", running)
	}
}
