package dryrun

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies"
)

// TestIsSent tests whether namespace shop is sent to target eu-1.
func TestIsSent(t *testing.T) {
	scheme := reconcilertest.Scheme(t, v1alpha1.AddToScheme)
	resource := func(namespace, target, template string) *v1alpha1.KubernetesApplicationResource {
		out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}}
		out.Spec.Template.Raw = []byte(template)
		if target != "" {
			out.Spec.TargetRef = &v1alpha1.TargetReference{Name: target}
		}
		return out
	}
	const shop, blog = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"blog"}}`
	const account = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"shop"}}`
	deleted := resource("team-a", "eu-1", shop)
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{v1alpha1.PropagationFinalizer}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}}}
	for name, tc := range map[string]struct {
		reason    string
		alongside []*unstructured.Unstructured
		other     *v1alpha1.KubernetesApplicationResource
		key       string
		want      bool
	}{
		"Nobody":         {reason: "No object provides the namespace."},
		"Alongside":      {reason: "The same request provides the namespace.", alongside: []*unstructured.Unstructured{nil, namespace}, want: true},
		"OtherResource":  {reason: "Another resource provides the namespace.", other: resource("team-a", "eu-1", shop), want: true},
		"Unplaced":       {reason: "A resource without a target may get this one.", other: resource("team-a", "", shop), want: true},
		"OtherTarget":    {reason: "A resource on another target does not provide the namespace.", other: resource("team-a", "eu-2", shop)},
		"OtherTeam":      {reason: "Resources of other namespaces of the hub do not count.", other: resource("team-b", "eu-1", shop)},
		"OtherName":      {reason: "A resource with another namespace does not count.", other: resource("team-a", "eu-1", blog)},
		"Deleted":        {reason: "A resource that is being deleted does not count.", other: deleted},
		"ServiceAccount": {reason: "A ServiceAccount is found like a namespace.", other: resource("team-a", "eu-1", account), key: policies.ServiceAccountKey("shop"), want: true},
		"OtherKind":      {reason: "A ServiceAccount is not a namespace.", other: resource("team-a", "eu-1", account)},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.PrerequisiteIndex, func(o client.Object) []string {
				indexed, _ := o.(*v1alpha1.KubernetesApplicationResource)
				return policies.PrerequisiteKeys(indexed)
			})
			if tc.other != nil {
				hub = hub.WithObjects(tc.other)
			}
			s := &scope{alongside: tc.alongside, resource: resource("team-a", "eu-1", "{}"), target: &v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu-1"}}}
			if tc.key == "" {
				tc.key = policies.NamespaceKey("shop")
			}
			if got := (&Runner{hub: hub.Build()}).isSent(t.Context(), s, tc.key); got != tc.want {
				t.Errorf("sent = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}
