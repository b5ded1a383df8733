package webhooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

func TestMissing(t *testing.T) {
	const pods = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {spec: {
  serviceAccountName: checkout, containers: [{name: web, envFrom: [{secretRef: {name: sql}}, {configMapRef: {name: maybe, optional: true}}]}]}}}}`
	const account = "spec.template.spec.serviceAccountName: ServiceAccount checkout does not exist in namespace team-a; Deployment web waits for it"
	const secret = "spec.template.spec.containers[0].envFrom[0].secretRef.name: Secret sql does not exist in namespace team-a; Deployment web waits for it"
	sends := named(&v1alpha1.KubernetesApplicationResource{}, "account")
	sends.Spec.Template = runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"checkout"}}`)}
	both := []client.Object{named(&corev1.ServiceAccount{}, "checkout"), named(&corev1.Secret{}, "sql")}
	for name, tc := range map[string]struct {
		reason       string
		cached, live []client.Object
		testRequest
		want []string
	}{
		"Missing":   {reason: "A warning names the object and the field.", testRequest: testRequest{object: pods}, want: []string{account, secret}},
		"There":     {reason: "Nothing is missing.", cached: both, testRequest: testRequest{object: pods}},
		"New":       {reason: "The cache may be behind.", live: both, testRequest: testRequest{object: pods}},
		"Sent":      {reason: "A user sends the ServiceAccount.", cached: []client.Object{sends, both[1]}, testRequest: testRequest{object: pods}},
		"Unchanged": {reason: "The author of an unchanged object knows.", testRequest: testRequest{object: pods, old: pods}},
		"Changed":   {reason: "A warning is repeated while it holds.", cached: both[1:], testRequest: testRequest{object: pods, old: strings.Replace(pods, "name: web, envFrom", "name: old, envFrom", 1)}, want: []string{account}},
		"Portico":   {reason: "Portico reads no warnings.", testRequest: testRequest{object: pods, user: porticoUser}},
		"Local":     {reason: "The Pods of the hub are none of Portico's.", testRequest: testRequest{object: strings.ReplaceAll(pods, "remote", "local")}},
	} {
		t.Run(name, func(t *testing.T) {
			build := func(objects []client.Object) client.Client {
				return fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...).
					WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.PrerequisiteIndex, func(o client.Object) []string {
						resource, _ := o.(*v1alpha1.KubernetesApplicationResource)
						return policies.PrerequisiteKeys(resource)
					}).Build()
			}
			server := webhook.NewServer(webhook.Options{})
			Register(server, Options{Reader: build(append(tc.cached, target("eu-1", nil))), Live: build(tc.live), Identity: porticoUser, Scheme: scheme()})
			tc.path = NativePath
			if diff := cmp.Diff(tc.want, submit(t, server.WebhookMux(), tc.testRequest).Warnings, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
