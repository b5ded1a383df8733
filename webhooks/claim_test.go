package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// TestClaimAtAdmission: the publish policies are evaluated for the target of a claim.
func TestClaimAtAdmission(t *testing.T) {
	made := &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: "demo", Labels: map[string]string{"env": "dev", "zone": "eu"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "compute.crossplane.io/v1alpha1", Kind: "KubernetesCluster", Name: "demo", UID: "1", Controller: ptr.To(true)}},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: v1alpha1.ClaimManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v1alpha1.GroupVersion.String(), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:env":{}}}}`)}},
	}}
	publish := policyv1alpha1.Publish
	hooks := serveReadOnly(t, ruledBy(t,
		rule(publish, "env", `deny contains {"code": "NotClaimed", "msg": sprintf("%s may not claim %s for %s", [input.request.user.username, input.target.metadata.labels.env, input.namespace.metadata.labels.team]), "field": "metadata.labels.env"} if input.target.metadata.labels.env == "prod"`, ""),
		rule(publish, "zone", `deny contains {"code": "Zone", "msg": input.request.kind.kind} if { input.oldTarget.metadata.labels.zone == "eu"; input.target.metadata.labels.env == "test" }`, ""),
		rule(publish, "secret", `warn contains {"code": "Secret", "msg": input.target.spec.connectionSecretRef.name} if input.target.spec.connectionSecretRef.name == "other"`, "")),
		made, func() client.Object { n := namespace(nil); n.SetLabels(map[string]string{"team": "a"}); return n }(),
	)
	kc := func(name, labels, spec string) string {
		return fmt.Sprintf(`{apiVersion: compute.crossplane.io/v1alpha1, kind: KubernetesCluster, metadata: {name: %s, uid: "1", labels: {%s}}, spec: {%s}}`, name, labels, spec)
	}
	const writes = "writeConnectionSecretToRef: {name: demo}"
	denied := []string{"policy env: NotClaimed: jane may not claim prod for a (metadata.labels.env)"}
	going := func(text string) string {
		return strings.Replace(text, `uid: "1"`, `uid: "1", deletionTimestamp: "2026-01-01T00:00:00Z"`, 1)
	}
	cases := map[string]struct {
		reason string
		testRequest
		message, warnings []string
	}{
		"Create":    {reason: "The policies see the author of the claim.", testRequest: testRequest{object: kc("new", "env: prod", writes)}, message: denied},
		"CreateDry": {reason: "A dry run evaluates the policies, too.", testRequest: testRequest{object: kc("new", "env: prod", writes), dryRun: true}, message: denied},
		"Good":      {reason: "An allowed claim is accepted.", testRequest: testRequest{object: kc("new", "env: dev", writes)}},
		"Relabel":   {reason: "A change of the labels is evaluated with its user.", testRequest: testRequest{object: kc("demo", "env: prod", writes), old: kc("demo", "env: dev", writes)}, message: denied},
		"Known":     {reason: "Policies see the existing target, with the labels of others.", testRequest: testRequest{object: kc("demo", "env: test", writes), old: kc("demo", "env: dev", writes)}, message: []string{"policy zone: Zone: KubernetesCluster"}},
		"Secret":    {reason: "A change of the Secret is evaluated.", testRequest: testRequest{object: kc("demo", "env: dev", "writeConnectionSecretToRef: {name: other}"), old: kc("demo", "env: dev", writes)}, warnings: []string{"policy secret: Secret: other"}},
		"Named":     {reason: "A claim that names its first Secret is evaluated.", testRequest: testRequest{object: kc("new", "env: prod", writes), old: kc("new", "env: prod", "")}, message: denied},
		"Bind":      {reason: "A change of the resource is evaluated.", testRequest: testRequest{object: kc("new", "env: prod", writes+", resourceRef: {name: a}"), old: kc("new", "env: prod", writes)}, message: denied},
		"Nameless":  {reason: "A claim without a Secret publishes no target.", testRequest: testRequest{object: kc("new", "env: prod", "")}},
		"Version":   {reason: "A change without an effect on the target is not evaluated.", testRequest: testRequest{object: kc("new", "env: prod", writes+", clusterVersion: '1.36'"), old: kc("new", "env: prod", writes)}},
		"Going":     {reason: "A claim that is being deleted publishes no target.", testRequest: testRequest{object: going(kc("demo", "env: prod", writes)), old: going(kc("demo", "env: dev", writes))}},
		"Status":    {reason: "A controller that binds the claim is a user like any other.", testRequest: testRequest{object: kc("demo", "env: prod", writes), old: kc("demo", "env: dev", writes), subresource: "status"}},
		"Portico":   {reason: "Portico's own requests are not evaluated.", testRequest: testRequest{object: kc("new", "env: prod", writes), user: porticoUser}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.path = ClaimPath
			if tc.user == "" {
				tc.user = "jane"
			}
			got := evaluateRequest(t, hooks, tc.testRequest)
			want := policyAnswer{Code: http.StatusOK, Message: tc.message, Warnings: tc.warnings}
			if len(tc.message) > 0 {
				want.Code = http.StatusForbidden
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(policyAnswer{}, "Audit")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClaimUnknown: a claim is denied when its target cannot be read.
func TestClaimUnknown(t *testing.T) {
	away := fake.NewClientBuilder().WithScheme(scheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("hub is away")
		},
	}).Build()
	server := webhook.NewServer(webhook.Options{})
	Register(server, Options{Reader: away, Live: away, Identity: porticoUser, Scheme: scheme(), AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"},
		Policies: ruledBy(t, rule(policyv1alpha1.Publish, "any", `deny contains {"code": "A", "msg": "no"} if false`, ""))})
	resp := submit(t, server.WebhookMux(), testRequest{path: ClaimPath, user: "jane",
		object: `{apiVersion: compute.crossplane.io/v1alpha1, kind: KubernetesCluster, metadata: {name: demo}, spec: {writeConnectionSecretToRef: {name: demo}}}`})
	if resp.Allowed || resp.Result.Code != http.StatusInternalServerError {
		t.Errorf("answers %t, %v", resp.Allowed, resp.Result)
	}
}
