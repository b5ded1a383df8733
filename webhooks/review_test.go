package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
)

// porticoUser is the user name of Portico.
const porticoUser = "system:serviceaccount:portico-system:portico"

var scheme = sync.OnceValue(func() *runtime.Scheme {
	out := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1alpha2.AddToScheme} {
		if err := add(out); err != nil {
			panic(err)
		}
	}
	return out
})

// front serves every webhook as the manager does. The hub contains objects. A write to
// the hub fails the test.
func front(t testing.TB, hub ...client.Object) http.Handler {
	t.Helper()
	return serveReadOnly(t, nil, hub...)
}

// serveReadOnly does the same, with policies.
func serveReadOnly(t testing.TB, evaluator *decisions.Evaluator, hub ...client.Object) http.Handler {
	t.Helper()
	written := func(what string) error {
		t.Errorf("a webhook wrote to the hub: %s", what)
		return nil
	}
	return serveWithPolicies(evaluator, fake.NewClientBuilder().WithScheme(scheme()).WithObjects(hub...).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, byApplication).WithIndex(&v1alpha1.KubernetesTarget{}, policies.ConnectionSecretIndex, bySecret).WithIndex(&v1alpha1.KubernetesTarget{}, policies.RelatedTargetIndex, byRelation).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.TargetIndex, byTarget).WithIndex(&v1alpha1.KubernetesApplicationResource{}, v1alpha1.LeavingTargetField, byLeavingTarget).WithIndex(&v1alpha1.KubernetesTarget{}, v1alpha1.ConnectionSecretField, bySecretName).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return written("create")
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return written("delete")
		},
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
			return written("delete all")
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return written("update")
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return written("patch")
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return written("apply")
		},
	}).Build())
}

func serve(reader client.Reader) http.Handler { return serveWithPolicies(nil, reader) }

func serveWithPolicies(evaluator *decisions.Evaluator, reader client.Reader) http.Handler {
	server := webhook.NewServer(webhook.Options{})
	Register(server, Options{
		Reader: reader, Live: reader, Identity: porticoUser, Scheme: scheme(), Secrets: liveSecrets{reader},
		Hub: authorizer{}, AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"},
		Policies: evaluator,
	})
	return server.WebhookMux()
}

// liveSecrets reads Secrets as the manager does.
type liveSecrets struct{ client.Reader }

func (s liveSecrets) Secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, s.Get(ctx, key, secret)
}

// testRequest describes an admission request.
type testRequest struct {
	path        string
	operation   admissionv1.Operation // default: CREATE, or UPDATE with an old object
	object, old string                // YAML
	subresource string
	user        string
	dryRun      bool
}

// request returns the AdmissionRequest.
func (a testRequest) request(t testing.TB) *admissionv1.AdmissionRequest {
	t.Helper()
	req := &admissionv1.AdmissionRequest{
		UID: "review-1", Operation: a.operation, SubResource: a.subresource, DryRun: ptr.To(a.dryRun), Namespace: "team-a",
	}
	req.UserInfo.Username = a.user
	about := a.object
	if about == "" {
		about = a.old
	}
	subject := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(about), &subject.Object); err != nil {
		t.Fatal(err)
	}
	gvk := subject.GroupVersionKind()
	req.Kind = metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	req.Name = subject.GetName()
	if req.Operation == "" {
		req.Operation = admissionv1.Create
		if a.old != "" {
			req.Operation = admissionv1.Update
		}
	}
	raw := func(text string) runtime.RawExtension {
		if text == "" {
			return runtime.RawExtension{}
		}
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: data}
	}
	req.Object, req.OldObject = raw(a.object), raw(a.old)
	return req
}

// submit sends a request, and returns the response.
func submit(t testing.TB, hooks http.Handler, a testRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	return post(t, hooks, a.path, a.request(t))
}

func post(t testing.TB, hooks http.Handler, path string, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  req,
	})
	if err != nil {
		t.Fatal(err)
	}
	resp := send(t, hooks, path, "application/json", body)
	if resp.UID != types.UID("review-1") {
		t.Errorf("the answer is for request %q, which is another one", resp.UID)
	}
	return resp
}

// send sends a body without changes.
func send(t testing.TB, hooks http.Handler, path, contentType string, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	hooks.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s answered with HTTP status %d, which an API server takes for no answer at all", path, w.Code)
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("reading the answer %q: %v", w.Body, err)
	}
	if answer.Response == nil {
		t.Fatalf("there is no answer in %q", w.Body)
	}
	return answer.Response
}

// admit sends a request, applies the patch of the response, and returns the object that
// would be stored.
func admit(t testing.TB, hooks http.Handler, a testRequest) (stored string, resp *admissionv1.AdmissionResponse) {
	t.Helper()
	resp = submit(t, hooks, a)
	if !resp.Allowed {
		t.Fatalf("refused: %v", resp.Result)
	}
	object := a.request(t).Object.Raw
	if len(resp.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(resp.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if object, err = patch.Apply(object); err != nil {
			t.Fatalf("applying %s: %v", resp.Patch, err)
		}
	}
	return string(object), resp
}

// parsed decodes YAML or JSON for comparisons. Whole numbers remain whole numbers.
func parsed(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func encode(t testing.TB, object any) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// byRelation is the index of related targets in the cache.
func byRelation(object client.Object) []string { return policies.RelatedTargetKeys(object) }

func bySecret(object client.Object) []string { return policies.ConnectionSecretKeys(object) }

func byApplication(object client.Object) []string { return policies.ApplicationKeys(object) }

// byTarget is the index of resources by target in the cache.
func byTarget(object client.Object) []string {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	return policies.TargetsOf(resource)
}
