package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/test/apiserver"
)

const claimsDefinition = "kubernetesclusters.compute.crossplane.io"

// TestClaims: only one overlay contains the definition of claims, and it contains no
// other additional object.
func TestClaims(t *testing.T) {
	list := func(overlay string) []string {
		var out []string
		for _, object := range render(t, overlay) {
			out = append(out, object.GetKind()+"/"+object.GetName())
		}
		return out
	}
	want := append(list("default"), "CustomResourceDefinition/"+claimsDefinition)
	if diff := cmp.Diff(want, list("claims"), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("in default with the definition of claims (-), and in claims (+):\n%s", diff)
	}
}

// TestClaimsOfOthers: if another installation defined claims, server-side apply without
// force has a conflict, and does not change the definition.
func TestClaimsOfOthers(t *testing.T) {
	const theirs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kubernetesclusters.compute.crossplane.io}
spec:
  group: compute.crossplane.io
  names: {kind: KubernetesCluster, listKind: KubernetesClusterList, plural: kubernetesclusters, singular: kubernetescluster}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	cluster, err := client.New(apiserver.Start(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	existing := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(theirs), &existing.Object); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Create(t.Context(), existing, client.FieldOwner("crossplane")); err != nil {
		t.Fatal(err)
	}
	for _, object := range render(t, "claims") {
		if object.GetName() != claimsDefinition {
			continue
		}
		err := cluster.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"))
		if !apierrors.IsConflict(err) {
			t.Errorf("applying Portico's definition over another: %v, want a conflict", err)
		}
	}
	now := existing.DeepCopy()
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(existing), now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(existing.Object["spec"], now.Object["spec"]); diff != "" {
		t.Errorf("the definition of others (-before +after):\n%s", diff)
	}
}
