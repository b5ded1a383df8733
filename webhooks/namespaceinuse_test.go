package webhooks

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// TestNamespaceInUse deletes resources with a Namespace that contains objects of
// others.
func TestNamespaceInUse(t *testing.T) {
	const (
		app      = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop, namespace: team-a, uid: app}}`
		forced   = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop, namespace: team-a, uid: app, annotations: {workload.crossplane.io/force: "true"}}}`
		orphaned = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop, namespace: team-a, uid: app, annotations: {workload.crossplane.io/deletion: Orphan}}}`
		resource = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: space, namespace: team-a}, spec: {targetRef: {name: eu-1}, template: {apiVersion: v1, kind: Namespace, metadata: {name: shop}}}}`
		other    = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web, namespace: team-a}, spec: {targetRef: {name: eu-1}, template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}}}`
	)
	full := policies.ObjectCounts{Counts: map[string]int{"ConfigMap": 2, "Pod": 1}}
	cases := map[string]struct {
		reason          string
		old, user       string
		in              policies.ObjectCounts
		away            error
		annotations     map[string]string // on the resource
		refused, warned string
	}{
		"Application":         {reason: "The Namespace would be deleted with its application.", old: app, in: full, refused: "holds objects of others, which its deletion would delete: 2 ConfigMap, 1 Pod"},
		"Resource":            {reason: "The Namespace would be deleted with its resource.", old: resource, in: full, refused: "kubernetesapplicationresource space"},
		"Other":               {reason: "The resource did not create the Namespace.", old: other, in: full},
		"Empty":               {reason: "The Namespace has no objects of others.", old: app},
		"Hidden":              {reason: "Objects that cannot be counted may exist.", old: app, in: policies.ObjectCounts{Hidden: []string{"Pod"}}, refused: "unknown number of Pod"},
		"Forced":              {reason: "The force annotation deletes the objects of others.", old: forced, in: full},
		"Orphan":              {reason: "The deletion policy Orphan keeps the Namespace.", old: orphaned, in: full},
		"ResourceForced":      {reason: "The force annotation may be on the resource of the Namespace.", old: app, in: full, annotations: map[string]string{v1alpha1.ForceAnnotation: "true"}},
		"ResourceOrphan":      {reason: "The deletion policy may be on the resource of the Namespace.", old: app, in: full, annotations: map[string]string{v1alpha1.DeletionAnnotation: "Orphan"}},
		"Away":                {reason: "Portico's controller counts before its own deletion.", old: app, away: errors.New("does not answer"), warned: "does not answer"},
		"NamespaceController": {reason: "The namespace of the hub is being deleted.", old: app, in: full, user: namespaceController},
		"GarbageCollector":    {reason: "The request follows from an earlier deletion.", old: resource, in: full, user: garbageCollector},
		"Portico":             {reason: "The request follows from an earlier deletion.", old: resource, in: full, user: porticoUser},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			space := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "space", Annotations: tc.annotations,
				Labels:          map[string]string{v1alpha1.ApplicationLabel: "shop"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "workload.crossplane.io/v1alpha2", Kind: "KubernetesApplication", Name: "shop", UID: "app", Controller: new(true)}}}}
			space.Spec.Template.Raw = []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
			space.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu-1"}
			reader := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(published(nil), space).
				WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, byApplication).Build()
			server := webhook.NewServer(webhook.Options{})
			Register(server, Options{Reader: reader, Live: reader, Identity: porticoUser, Scheme: scheme(),
				ObjectsInNamespace: func(context.Context, *v1alpha1.KubernetesTarget, *v1alpha1.KubernetesApplicationResource) (policies.ObjectCounts, error) {
					return tc.in, tc.away
				}})
			resp := post(t, server.WebhookMux(), NamespacePath, testRequest{path: NamespacePath, operation: admissionv1.Delete, old: tc.old, user: tc.user}.request(t))
			if resp.Allowed != (tc.refused == "") || tc.refused != "" && !strings.Contains(resp.Result.Message, tc.refused) {
				t.Errorf("%s It is allowed: %t, %v, want refusal %q", tc.reason, resp.Allowed, resp.Result, tc.refused)
			}
			if warnings := strings.Join(resp.Warnings, ""); !strings.Contains(warnings, tc.warned) {
				t.Errorf("%s It warns %q, want %q", tc.reason, warnings, tc.warned)
			}
		})
	}
}
