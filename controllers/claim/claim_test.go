package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	computev1alpha1 "github.com/portico-io/portico/api/compute/v1alpha1"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/dynamicwatch"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/connectionsecret"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
)

// onlyDev denies every environment except dev. The evaluation of broken fails.
const (
	onlyDev = `deny contains {"code": "NotClaimed", "msg": sprintf("%s may not claim it", [input.request.operation]), "field": "metadata.labels.env"} if input.target.metadata.labels.env != "dev"`
	broken  = `deny contains {"code": "A", "msg": "no"} if units.parse_bytes("12 parsecs") > 10`
)

func rule(text string) *policyv1alpha1.Policy {
	return &policyv1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "claimed"}, Spec: policyv1alpha1.PolicySpec{
		Type: policyv1alpha1.Publish, Modules: map[string]string{"rule.rego": "package publish.claimed\n\nimport rego.v2\n\n" + text + "\n"},
	}}
}

func bound(env string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "compute.crossplane.io/v1alpha1", "kind": "KubernetesCluster",
		"metadata": map[string]any{"namespace": "team", "name": "demo", "uid": "1", "labels": map[string]any{"env": env}},
		"spec":     map[string]any{"writeConnectionSecretToRef": map[string]any{"name": "demo"}},
		"status":   map[string]any{"bindingPhase": "Bound"},
	}}
}

// target returns the published target of the claim.
func target(env string, conditions ...metav1.Condition) *v1alpha1.KubernetesTarget {
	return &v1alpha1.KubernetesTarget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "demo", Labels: map[string]string{"env": env},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "compute.crossplane.io/v1alpha1", Kind: "KubernetesCluster", Name: "demo", UID: "1", Controller: ptr.To(true)}},
		},
		Spec:   v1alpha1.KubernetesTargetSpec{ConnectionSecretRef: &v1alpha1.SecretReference{Name: "demo"}},
		Status: v1alpha1.KubernetesTargetStatus{Conditions: conditions},
	}
}

// claimRequest is the request for the claim that boundClaim returns.
var claimRequest = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "demo"}}

var clusters = schema.GroupVersionResource{Group: computev1alpha1.KubernetesClusterKind.Group, Version: "v1alpha1", Resource: "kubernetesclusters"}

// environment is a controller with a fake hub.
type environment struct {
	*Controller
	hub      client.Client
	recorder *events.FakeRecorder
	// dynamic is the client for claims.
	dynamic *dynamicfake.FakeDynamicClient
	// steps are the names of the executed steps.
	steps []string
}

type settings struct {
	policy  string
	claim   *unstructured.Unstructured
	objects []client.Object
	// fails returns the error of a request to the hub; nil fails none.
	fails func(reconcilertest.Request) error
	// unserved means that the hub does not serve the kind of claims.
	unserved bool
}

func newEnvironment(t *testing.T, o settings) *environment {
	t.Helper()
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme)
	objects := append([]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}}, o.objects...)
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.KubernetesTarget{}).
		WithIndex(&v1alpha1.KubernetesTarget{}, policies.RelatedTargetIndex, func(o client.Object) []string { return policies.RelatedTargetKeys(o) }).
		WithInterceptorFuncs(reconcilertest.Before(o.fails)).Build()
	var claims []runtime.Object
	if o.claim != nil {
		claims = append(claims, o.claim)
	}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{clusters: "KubernetesClusterList"}, claims...)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{clusters.GroupVersion()})
	if !o.unserved {
		mapper.Add(computev1alpha1.KubernetesClusterKind.WithVersion("v1alpha1"), meta.RESTScopeNamespace)
	}
	rules := engine.New(engine.Options{Timeout: time.Minute})
	var all []*policyv1alpha1.Policy
	if o.policy != "" {
		all = append(all, rule(o.policy))
	}
	rules.Replace(t.Context(), all)
	recorder := events.NewFakeRecorder(10)
	return &environment{
		Controller: &Controller{
			hub: hub, live: hub, writer: reconciler.Writer{Client: hub, Owner: v1alpha1.ClaimManager}, dynamic: dynamic, mapper: mapper,
			recorder: recorder, evaluator: decisions.New(rules, "portico-system"), memory: newMemory(),
			watches: dynamicwatch.New(t.Context(), dynamicwatch.Options{Client: dynamic, Trim: connectionsecret.TrimCluster}),
		},
		hub: hub, recorder: recorder, dynamic: dynamic,
	}
}

// reconcile runs one reconcile, and records its steps.
func (e *environment) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	log := reconcilertest.Steps(&e.steps)
	return e.Reconcile(ctrl.LoggerInto(ctx, log), req)
}

// TestPolicies does not create or label a target that the publish policies deny.
func TestPolicies(t *testing.T) {
	refused := metav1.Condition{Type: v1alpha1.Published, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDeniedByPolicy}
	const denied = "policy claimed: NotClaimed: AUDIT may not claim it (metadata.labels.env)"
	cases := map[string]struct {
		reason    string
		policy    string
		claim     string
		existing  *v1alpha1.KubernetesTarget
		env       string // label of the target afterwards; empty if there is no target
		published string // the condition Published
		event     string
		denied    bool // the claim is reconciled when policies or the namespace change
		requeue   time.Duration
	}{
		"Free":     {reason: "Without policies a bound claim is published.", claim: "prod", env: "prod", event: "Normal Published published as KubernetesTarget demo"},
		"Allowed":  {reason: "A claim that the policies allow is published.", policy: onlyDev, claim: "dev", env: "dev", event: "Normal Published published as KubernetesTarget demo"},
		"Denied":   {reason: "A claim that the policies deny is not published.", policy: onlyDev, claim: "prod", event: "Warning DeniedByPolicy the claim is not published: " + denied, denied: true},
		"Relabels": {reason: "A target keeps its labels if the new ones are denied.", policy: onlyDev, claim: "prod", existing: target("dev"), env: "dev", published: "False DeniedByPolicy", event: "Warning DeniedByPolicy the target does not follow the change of its claim: " + denied, denied: true},
		"Kept":     {reason: "A published target is kept when policies change.", policy: onlyDev, claim: "prod", existing: target("prod"), env: "prod"},
		"Reverted": {reason: "A claim with its earlier labels is allowed.", policy: onlyDev, claim: "dev", existing: target("dev", refused), env: "dev", published: "True Applied"},
		"Later":    {reason: "A denied claim is published when the policies allow it.", claim: "prod", existing: target("dev", refused), env: "prod", published: "True Applied"},
		"Broken":   {reason: "A policy that fails is evaluated again.", policy: broken, claim: "dev", event: "Warning PolicyFailed the claim is not published: policy claimed", denied: true, requeue: policyRetryInterval},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := settings{policy: tc.policy, claim: bound(tc.claim)}
			if tc.existing != nil {
				o.objects = append(o.objects, tc.existing)
			}
			e := newEnvironment(t, o)
			result, err := e.reconcile(t.Context(), claimRequest)
			if err != nil {
				t.Fatal(err)
			}
			var list v1alpha1.KubernetesTargetList
			if err := e.hub.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			env, published := "", ""
			for _, target := range list.Items {
				env = target.Labels["env"]
				if condition := meta.FindStatusCondition(target.Status.Conditions, v1alpha1.Published); condition != nil {
					published = fmt.Sprintf("%s %s", condition.Status, condition.Reason)
				}
			}
			if event := reconcilertest.NextEvent(e.recorder); !strings.HasPrefix(event, tc.event) || tc.event == "" && event != "" {
				t.Errorf("%s: event %q, want %q", tc.reason, event, tc.event)
			}
			if diff := cmp.Diff([]any{tc.env, tc.published, tc.denied, tc.requeue}, []any{env, published, len(e.memory.deniedIn("team")) > 0, result.RequeueAfter}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if len(e.memory.deniedIn("other")) > 0 {
				t.Error("a claim is listed in another namespace")
			}
		})
	}
}

// secretOf returns the Secret of the claim. A claim with the UID controls the Secret.
func secretOf(uid types.UID) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "compute.crossplane.io/v1alpha1", Kind: "KubernetesCluster", Name: "demo", UID: uid, Controller: ptr.To(true)},
	}}}
}

// TestSteps runs the steps in order, until a step ends the reconcile.
func TestSteps(t *testing.T) {
	all := []string{"read claim", "read target", "read secret", "decide target", "check policies", "write target"}
	failure := errors.New("the hub is away")
	published := "Normal Published published as KubernetesTarget demo"
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "demo", failure)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		reason string
		settings
		fail  error // the error of reading the claim
		steps int   // the number of executed steps
		event string
		err   error
		// blocked means that the claim waits for its Secret.
		blocked bool
	}{
		"Published":   {reason: "A bound claim gets a target.", settings: settings{claim: bound("dev")}, steps: 6, event: published},
		"WithSecret":  {reason: "A claim that controls its Secret gets a target.", settings: settings{claim: bound("dev"), objects: []client.Object{secretOf("1")}}, steps: 6, event: published},
		"Unserved":    {reason: "A cluster without the kind has no claims.", settings: settings{unserved: true}, steps: 1},
		"Absent":      {reason: "A deleted claim needs no work.", steps: 1},
		"Unbound":     {reason: "A claim without a cluster gets no target.", settings: settings{claim: without(bound("dev"), "status")}, steps: 1},
		"NoSecret":    {reason: "A claim has to name a Secret.", settings: settings{claim: without(bound("dev"), "spec")}, steps: 4, event: "Warning SecretMissing the claim is bound, and not published: it names no secret in spec.writeConnectionSecretToRef"},
		"OtherSecret": {reason: "A Secret that another resource controls is not used.", settings: settings{claim: bound("dev"), objects: []client.Object{secretOf("2")}}, steps: 4, blocked: true, event: "Warning SecretNotControlled the claim is not published: secret demo is not controlled by it; a user with the right to read that secret can name it in a KubernetesTarget"},
		"NameTaken":   {reason: "A target that another resource controls is not changed.", settings: settings{claim: bound("dev"), objects: []client.Object{&v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo"}}}}, steps: 4, event: "Warning NameTaken the claim is not published: KubernetesTarget demo exists and does not belong to this claim; rename or delete one of them"},
		"ClaimFails":  {reason: "A failure to read the claim is tried again.", settings: settings{claim: bound("dev")}, fail: failure, steps: 1, err: failure},
		"TargetFails": {reason: "A failure to read the target is tried again.", settings: settings{claim: bound("dev"), fails: reconcilertest.FailOn("get KubernetesTarget", failure)}, steps: 2, err: failure},
		"SecretFails": {reason: "A failure to read the Secret is tried again.", settings: settings{claim: bound("dev"), fails: reconcilertest.FailOn("get Secret", failure)}, steps: 3, err: failure, blocked: true},
		"NamespaceFails": {reason: "A failure to read the namespace, which policies need, is tried again.",
			settings: settings{claim: bound("dev"), policy: onlyDev, fails: reconcilertest.FailOn("get Namespace", failure)}, steps: 5, err: failure},
		"CreateFails": {reason: "A failure to create the target is tried again.", settings: settings{claim: bound("dev"), fails: reconcilertest.FailOn("create KubernetesTarget", failure)}, steps: 6, err: failure},
		"Terminating": {reason: "A namespace that is deleted gets no target.", settings: settings{claim: bound("dev"), fails: reconcilertest.FailOn("create KubernetesTarget", terminating)}, steps: 6},
		"PatchFails":  {reason: "A failure to change the target is tried again.", settings: settings{claim: bound("dev"), objects: []client.Object{target("prod")}, fails: reconcilertest.FailOn("patch KubernetesTarget", failure)}, steps: 6, err: failure},
		"StatusFails": {reason: "A failure to write the condition is tried again.", settings: settings{claim: bound("prod"), policy: onlyDev, objects: []client.Object{target("dev")}, fails: reconcilertest.FailOn("patch status KubernetesTarget", failure)}, steps: 5, err: failure, event: "Warning DeniedByPolicy the target does not follow the change of its claim"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, tc.settings)
			if tc.fail != nil {
				e.dynamic.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.fail })
			}
			_, err := e.reconcile(t.Context(), claimRequest)
			if !errors.Is(err, tc.err) || tc.err == nil && err != nil {
				t.Errorf("%s: error %v, want %v", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(all[:tc.steps], e.steps); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if event := reconcilertest.NextEvent(e.recorder); !strings.HasPrefix(event, tc.event) || tc.event == "" && event != "" {
				t.Errorf("%s: event %q, want %q", tc.reason, event, tc.event)
			}
			waits := slices.Contains(e.memory.claimsOf(types.NamespacedName{Namespace: "team", Name: "demo"}), claimRequest)
			if waits != tc.blocked {
				t.Errorf("%s: the claim waits for its Secret: %t", tc.reason, waits)
			}
		})
	}
}

func without(claim *unstructured.Unstructured, field string) *unstructured.Unstructured {
	delete(claim.Object, field)
	return claim
}

// TestIdle writes nothing if the target agrees with its claim.
func TestIdle(t *testing.T) {
	e := newEnvironment(t, settings{claim: bound("dev")})
	for range 2 {
		if _, err := e.reconcile(t.Context(), claimRequest); err != nil {
			t.Fatal(err)
		}
	}
	got := &v1alpha1.KubernetesTarget{}
	if err := e.hub.Get(t.Context(), claimRequest.NamespacedName, got); err != nil {
		t.Fatal(err)
	}
	if got.ResourceVersion != "1" {
		t.Errorf("resource version %s after two reconciles, want one write", got.ResourceVersion)
	}
}

// TestKind watches claims while the hub serves their kind. If the kind is not served,
// but its definition exists, the controller waits for it.
func TestKind(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: kindRequest.Name}}
	cases := map[string]struct {
		reason string
		settings
		watched bool
		requeue time.Duration
	}{
		"Served":   {reason: "The kind is watched.", watched: true},
		"Unserved": {reason: "Without a definition the watch of definitions starts the next reconcile.", settings: settings{unserved: true}},
		"Defined":  {reason: "No event tells when a definition is served.", settings: settings{unserved: true, objects: []client.Object{definition}}, requeue: kindRetryInterval},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, tc.settings)
			result, err := e.reconcile(t.Context(), kindRequest)
			if err != nil || result.RequeueAfter != tc.requeue || len(e.watches.Running()) > 0 != tc.watched {
				t.Errorf("%s: result %v, error %v, watches %v", tc.reason, result, err, e.watches.Running())
			}
		})
	}
}

// TestRequests maps events of other objects to claims.
func TestRequests(t *testing.T) {
	e := newEnvironment(t, settings{})
	other := types.NamespacedName{Namespace: "team", Name: "other"}
	e.memory.setSecret(other, types.NamespacedName{Namespace: "team", Name: "demo"})
	want := []reconcile.Request{{NamespacedName: other}, claimRequest}
	if diff := cmp.Diff(want, e.claimsOfSecret(t.Context(), secretOf("1"))); diff != "" {
		t.Errorf("a Secret is that of its claim, and of the claims that it blocks (-want +got):\n%s", diff)
	}
	e.memory.setDenied(other, true)
	if diff := cmp.Diff(want[:1], e.deniedInNamespace(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})); diff != "" {
		t.Errorf("a namespace is that of its denied claims (-want +got):\n%s", diff)
	}
	if got := requestsOfDefinition(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "others.example.org"}}); got != nil {
		t.Errorf("another definition requests %v", got)
	}
}
