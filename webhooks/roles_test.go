package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

func TestRoles(t *testing.T) {
	pods := func(annotations string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}` + annotations + `}, spec: {template: {spec: {serviceAccountName: checkout, containers: [{name: web}]}}}}`
	}
	binding := func(name, kind, account string) client.Object {
		out := named(&rbacv1.RoleBinding{}, name)
		out.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: "reader"}
		out.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "team-a", Name: account}}
		return out
	}
	const (
		with    = `, annotations: {workload.crossplane.io/with-rbac: "true"}`
		without = `, annotations: {workload.crossplane.io/with-rbac: "false"}`
		warning = "spec.template.spec.serviceAccountName: ServiceAccount checkout has no rights of RoleBinding readers, writers on the target; " +
			"annotate Deployment web, or its namespace, with workload.crossplane.io/with-rbac=true to send its Roles"
	)
	both := []client.Object{binding("writers", "Role", "checkout"), binding("readers", "Role", "checkout")}
	for name, tc := range map[string]struct {
		reason    string
		bindings  []client.Object
		namespace map[string]string
		testRequest
		want []string
	}{
		"Stays":     {reason: "A warning names the RoleBindings and the remedy.", bindings: both, testRequest: testRequest{object: pods("")}, want: []string{warning}},
		"Sent":      {reason: "The Roles are sent.", bindings: both, testRequest: testRequest{object: pods(with), user: "root"}},
		"Namespace": {reason: "The Roles are sent.", bindings: both, namespace: map[string]string{v1alpha1.WithRBACAnnotation: "true"}, testRequest: testRequest{object: pods("")}},
		"Decided":   {reason: "The author decided that they stay.", bindings: both, testRequest: testRequest{object: pods(without)}},
		"Other":     {reason: "Another ServiceAccount has the Role.", bindings: []client.Object{binding("readers", "Role", "other")}, testRequest: testRequest{object: pods("")}},
		"Cluster":   {reason: "A ClusterRole is not sent with the annotation either.", bindings: []client.Object{binding("readers", "ClusterRole", "checkout")}, testRequest: testRequest{object: pods("")}},
		"Unchanged": {reason: "The author of an unchanged object knows.", bindings: both, testRequest: testRequest{object: pods(""), old: pods("")}},
		"Portico":   {reason: "Portico reads no warnings.", bindings: both, testRequest: testRequest{object: pods(""), user: porticoUser}},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(scheme()).
				WithObjects(append(tc.bindings, target("eu-1", nil), namespace(tc.namespace), named(&corev1.ServiceAccount{}, "checkout"))...).
				WithIndex(&rbacv1.RoleBinding{}, policies.SubjectIndex, func(o client.Object) []string {
					binding, _ := o.(*rbacv1.RoleBinding)
					return kinds.AccountsOf(binding)
				}).Build()
			server := webhook.NewServer(webhook.Options{})
			Register(server, Options{Reader: reader, Identity: porticoUser, Scheme: scheme(), Hub: authorizer{}})
			tc.path = NativePath
			if diff := cmp.Diff(tc.want, submit(t, server.WebhookMux(), tc.testRequest).Warnings, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
