package targets

import (
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

const ponds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ponds.versions.example.org}
spec:
  group: versions.example.org
  names: {kind: Pond, plural: ponds, singular: pond, listKind: PondList}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// TestVersionDropped: a target no longer serves the version in which objects were
// applied. They are still deleted and released there. Only when the kind is gone in
// every version, a resource is deleted without its object, with an event.
func TestVersionDropped(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	namespace := w.namespace(t, "versions")
	group := schema.GroupVersion{Group: "versions.example.org", Version: "v1"}

	definition := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(ponds), &definition.Object))
	must(t, w.Create(ctx, definition))
	pond := func(name string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		out.SetGroupVersionKind(group.WithKind("Pond"))
		out.SetNamespace(namespace)
		out.SetName(name)
		return out
	}
	eventually(t, "the definition to be served", func() (bool, string) {
		err := w.Get(ctx, client.ObjectKeyFromObject(pond("none")), pond("none"))
		return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse), fmt.Sprint(err)
	})

	w.publish(t, namespace, "target", w.connection(w.account(t, namespace, "portico", append(everything, rule(group.Group, "ponds", "*"))...)))
	names := []string{"deleted", "released", "reconnected", "last"}
	for _, name := range names {
		w.place(t, namespace, name, "target", fmt.Sprintf(
			`{"apiVersion":"versions.example.org/v1beta1","kind":"Pond","metadata":{"namespace":%q,"name":%q},"spec":{"depth":3}}`, namespace, name))
	}
	for _, name := range names {
		w.synced(t, namespace, name, v1alpha1.ReasonApplied, nil)
	}

	must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the API server writes its status
		must(t, w.Get(ctx, client.ObjectKeyFromObject(definition), definition))
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		versions[0].(map[string]any)["served"] = false
		must(t, unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"))
		return w.Update(ctx, definition)
	}))
	eventually(t, "v1beta1 to be gone", func() (bool, string) {
		_, err := w.api.Discovery().ServerResourcesForGroupVersion("versions.example.org/v1beta1")
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})

	remove := func(name string) {
		t.Helper()
		resource := &v1alpha1.KubernetesApplicationResource{}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		must(t, w.Get(ctx, key, resource))
		must(t, w.Delete(ctx, resource))
		eventually(t, "resource "+name+" to be gone", func() (bool, string) {
			err := w.Get(ctx, key, resource)
			return apierrors.IsNotFound(err), fmt.Sprint(err, resource.Status.Conditions)
		})
	}
	absent := func(name string) {
		t.Helper()
		if err := w.Get(ctx, client.ObjectKeyFromObject(pond(name)), pond(name)); !apierrors.IsNotFound(err) {
			t.Errorf("the resource is gone, and Pond %s stayed on the target (%v)", name, err)
		}
	}

	remove("deleted")
	absent("deleted")

	released := &v1alpha1.KubernetesApplicationResource{}
	must(t, w.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "released"}, released))
	before := released.DeepCopy()
	released.Annotations = map[string]string{v1alpha1.DeletionAnnotation: string(v1alpha1.DeletionOrphan)}
	must(t, w.Patch(ctx, released, client.MergeFrom(before)))
	remove("released")
	left := pond("released")
	must(t, w.Get(ctx, client.ObjectKeyFromObject(left), left))
	if len(left.GetLabels()) > 0 || len(left.GetAnnotations()) > 0 {
		t.Errorf("Pond released keeps Portico's marks: %v %v", left.GetLabels(), left.GetAnnotations())
	}

	// A new connection does not know the version.
	token, err := w.api.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "portico", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	w.rotate(t, namespace, "target", w.connection(token.Status.Token))
	remove("reconnected")
	absent("reconnected")

	must(t, w.Delete(ctx, definition))
	eventually(t, "the kind to be gone", func() (bool, string) {
		_, err := w.api.Discovery().ServerResourcesForGroupVersion(group.String())
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
	remove("last")
	eventually(t, "an event that tells of it", func() (bool, string) {
		events := &eventsv1.EventList{}
		must(t, w.List(ctx, events, client.InNamespace(namespace)))
		message := ""
		for _, e := range events.Items {
			if e.Regarding.Name == "last" && e.Reason == v1alpha1.EventKindGone && strings.Contains(e.Note, "kind Pond") {
				return true, ""
			}
			message += e.Regarding.Name + " " + e.Reason + ": " + e.Note + "\n"
		}
		return false, message
	})
}
