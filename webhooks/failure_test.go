package webhooks

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

// subjects has a request for each webhook.
var subjects = map[string]testRequest{
	HoldPath:          {path: HoldPath, object: deployment, old: heldDeployment},
	HoldNamespacePath: {path: HoldNamespacePath, object: localDeployment, old: heldDeployment},
	PinPath:           {path: PinPath, object: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {workload.crossplane.io/schedule: remote}}}`},
	ShieldPath:        {path: ShieldPath, object: heldDeployment + "status: {replicas: 0}", old: heldDeployment, subresource: "status"},
	NativePath:        {path: NativePath, object: deployment, old: heldDeployment},
	WorkloadPath:      {path: WorkloadPath, object: `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1}, spec: {}}`},
	ConnectionPath:    {path: ConnectionPath, object: `{apiVersion: v1, kind: Secret, metadata: {name: eu-1}}`},
	ClaimPath:         {path: ClaimPath, object: `{apiVersion: compute.crossplane.io/v1alpha1, kind: KubernetesCluster, metadata: {name: demo}, spec: {writeConnectionSecretToRef: {name: demo}}}`},
	InUsePath:         {path: InUsePath, operation: admissionv1.Delete, old: usedTarget},
	InUseSecretPath:   {path: InUseSecretPath, operation: admissionv1.Delete, old: usedSecret},
	NamespacePath:     {path: NamespacePath, operation: admissionv1.Delete, old: `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop}}`},
	KindPath:          {path: KindPath, object: "{apiVersion: workload.crossplane.io/v1alpha1, kind: PropagationKind, metadata: {name: lake.example.org}, spec: {group: example.org, kind: Lake}}"},
	PolicyPath:        {path: PolicyPath, object: "{apiVersion: policy.workload.crossplane.io/v1alpha1, kind: Policy, metadata: {name: p}, spec: {type: Scheduling}}"},
}

// judged are the webhooks that decode the object of the request.
var judged = []string{HoldPath, HoldNamespacePath, PinPath, ShieldPath, NativePath, WorkloadPath, ConnectionPath}

// failurePolicies reads the failurePolicy of each webhook from config/webhook.
func failurePolicies(t testing.TB) map[string]admissionregistrationv1.FailurePolicyType {
	t.Helper()
	out := map[string]admissionregistrationv1.FailurePolicyType{}
	for _, file := range []string{"mutating.yaml", "validating.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "config", "webhook", file))
		if err != nil {
			t.Fatal(err)
		}
		var configuration struct {
			Webhooks []struct {
				ClientConfig  admissionregistrationv1.WebhookClientConfig
				FailurePolicy admissionregistrationv1.FailurePolicyType
			}
		}
		if err := yaml.Unmarshal(text, &configuration); err != nil {
			t.Fatal(err)
		}
		for _, hook := range configuration.Webhooks {
			out[*hook.ClientConfig.Service.Path] = hook.FailurePolicy
		}
	}
	return out
}

func TestEveryPathIsTested(t *testing.T) {
	for _, path := range Paths {
		if _, ok := subjects[path]; !ok {
			t.Errorf("%s has no request to be tested with", path)
		}
		if _, ok := failurePolicies(t)[path]; !ok {
			t.Errorf("%s is not in config/webhook", path)
		}
	}
}

// TestUndecided makes every webhook fail in every possible way. The response must agree
// with the webhook's failurePolicy, because the API server applies the failurePolicy
// only to calls without a response.
func TestUndecided(t *testing.T) {
	policies := failurePolicies(t)
	broken := map[string]struct {
		reason  string
		of      []string // the webhooks that can fail in this way; all if empty
		request func(*admissionv1.AdmissionRequest)
		reader  client.Reader
	}{
		"ObjectUnreadable": {
			reason:  "The object is no mapping.",
			of:      judged,
			request: func(r *admissionv1.AdmissionRequest) { r.Object = runtime.RawExtension{Raw: []byte(`[1]`)} },
		},
		"ObjectWithoutKind": {
			reason:  "The object has no kind.",
			of:      []string{HoldPath, HoldNamespacePath, PinPath, ShieldPath, NativePath},
			request: func(r *admissionv1.AdmissionRequest) { r.Object = runtime.RawExtension{Raw: []byte(`{}`)} },
		},
		"ObjectMissing": {
			reason:  "There is no object.",
			of:      judged,
			request: func(r *admissionv1.AdmissionRequest) { r.Object = runtime.RawExtension{} },
		},
		"OldObjectUnreadable": {
			reason: "The old object is no mapping.",
			of:     judged,
			request: func(r *admissionv1.AdmissionRequest) {
				r.Operation, r.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(`[1]`)}
			},
		},
		"CacheFails": {
			reason: "The cache cannot be read.",
			of:     []string{NativePath, ConnectionPath, InUsePath, InUseSecretPath},
			reader: failing{errors.New("cache is not started")},
		},
		"Panics": {
			reason: "There is an error in Portico.",
			of:     []string{NativePath},
			reader: failing{nil},
		},
	}
	for name, tc := range broken {
		for _, path := range Paths {
			if len(tc.of) > 0 && !slices.Contains(tc.of, path) {
				continue
			}
			t.Run(name+path, func(t *testing.T) {
				hooks := front(t)
				if tc.reader != nil {
					hooks = serve(tc.reader)
				}
				req := subjects[path].request(t)
				if tc.request != nil {
					tc.request(req)
				}
				expectUndecided(t, policies[path], tc.reason, post(t, hooks, path, req))
			})
		}
	}
}

// TestPanic makes a webhook panic.
func TestPanic(t *testing.T) {
	for answer, policy := range map[failurePolicy]admissionregistrationv1.FailurePolicyType{
		deny: admissionregistrationv1.Fail, allow: admissionregistrationv1.Ignore,
	} {
		hook := &admission.Webhook{Handler: failureHandler{path: "/x", failurePolicy: answer, handle: func(context.Context, admission.Request) (admission.Response, error) {
			panic("secret of a panic")
		}}}
		expectUndecided(t, policy, "There is a bug in Portico.", post(t, hook, "/x", subjects[NativePath].request(t)))
	}
}

func expectUndecided(t *testing.T, policy admissionregistrationv1.FailurePolicyType, reason string, resp *admissionv1.AdmissionResponse) {
	t.Helper()
	if len(resp.Patch) > 0 {
		t.Errorf("%s It changes the object all the same: %s", reason, resp.Patch)
	}
	text := strings.Join(resp.Warnings, " ") + resp.Result.Message
	if strings.Contains(text, "secret") {
		t.Errorf("%s The answer has details that belong only in the log: %s", reason, text)
	}
	switch policy {
	case admissionregistrationv1.Fail:
		if resp.Allowed || resp.Result.Code != http.StatusInternalServerError || resp.Result.Message == "" {
			t.Errorf("%s Under Fail the answer is %t, %v", reason, resp.Allowed, resp.Result)
		}
	case admissionregistrationv1.Ignore:
		if !resp.Allowed || len(resp.Warnings) != 1 {
			t.Errorf("%s Under Ignore the answer is %t, %v, %q", reason, resp.Allowed, resp.Result, resp.Warnings)
		}
	default:
		t.Errorf("the failure policy is %q", policy)
	}
}

// failing is a cache that returns an error, or panics.
type failing struct{ err error }

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	if f.err == nil {
		panic("secret of a panic")
	}
	return f.err
}

func (f failing) List(context.Context, client.ObjectList, ...client.ListOption) error { return f.err }

// TestDeletion sends deletions that Portico's webhook configurations do not select, but
// another configuration might. The webhooks for objects that are to be stored allow
// them.
func TestDeletion(t *testing.T) {
	for _, path := range judged {
		for _, operation := range []admissionv1.Operation{admissionv1.Delete, admissionv1.Connect} {
			a := subjects[path]
			a.operation, a.old, a.object = operation, a.object, ""
			if resp := submit(t, serve(failing{errors.New("cache is not started")}), a); !resp.Allowed || len(resp.Patch)+len(resp.Warnings) > 0 {
				t.Errorf("%s answers %s with %t, %v, %q", path, operation, resp.Allowed, resp.Result, resp.Warnings)
			}
		}
	}
}

func TestLogDecision(t *testing.T) {
	patched := admission.Allowed("")
	patched.Patches = []jsonpatch.JsonPatchOperation{jsonpatch.NewOperation("add", "/metadata/labels", nil)}
	cases := map[string]struct {
		response admission.Response
		want     string
	}{
		"Unchanged": {admission.Allowed(""), `4 "Allowed an admission request without a change"`},
		"Patched":   {patched, `2 "Allowed an admission request"`},
		"Warned":    {admission.Allowed("").WithWarnings("a"), `2 "Allowed an admission request"`},
		"Denied":    {admission.Denied("no"), `2 "Denied an admission request"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got string
			logger := funcr.New(func(_, args string) {
				_, got, _ = strings.Cut(args, `"level"=`)
				got, _, _ = strings.Cut(got, ` "path"`)
			}, funcr.Options{Verbosity: 4})
			failureHandler{path: HoldPath}.log(logf.IntoContext(t.Context(), logger), tc.response)
			if diff := cmp.Diff(strings.Replace(tc.want, ` "`, ` "msg"="`, 1), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestMalformedBodies: every webhook refuses bodies that no API server sends.
func TestMalformedBodies(t *testing.T) {
	cases := map[string]struct {
		contentType, body string
		want              int32
	}{
		"Empty":      {"application/json", "", http.StatusBadRequest},
		"NotJSON":    {"application/json", "{", http.StatusBadRequest},
		"NotAReview": {"application/json", `{"apiVersion": "v1", "kind": "Pod"}`, http.StatusBadRequest},
		"Protobuf":   {"application/vnd.kubernetes.protobuf", `{}`, http.StatusBadRequest},
		"TooLarge":   {"application/json", strings.Repeat(" ", 8<<20), http.StatusRequestEntityTooLarge},
		"NoRequest":  {"application/json", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}`, http.StatusBadRequest},
	}
	hooks := front(t)
	for name, tc := range cases {
		for _, path := range Paths {
			t.Run(name+path, func(t *testing.T) {
				resp := send(t, hooks, path, tc.contentType, []byte(tc.body))
				if resp.Allowed || resp.Result.Code != tc.want {
					t.Errorf("answers %t, %v, want code %d", resp.Allowed, resp.Result, tc.want)
				}
			})
		}
	}
}
