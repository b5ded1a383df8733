package targets

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestNamespaceInUse deletes a resource that created a Namespace on a target. The
// Namespace is kept while it contains objects of others, until a user decides.
func TestNamespaceInUse(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	namespace := w.namespace(t, "owners")
	w.publish(t, namespace, "target", w.connection(w.account(t, namespace, "portico", rule("*", "*", "*"))),
		func(k *v1alpha1.KubernetesTarget) {
			k.Spec.Allow = &v1alpha1.Allowance{Kinds: []metav1.GroupKind{{Kind: "Namespace"}, {Kind: "ConfigMap"}}}
		})
	member := func(r *v1alpha1.KubernetesApplicationResource) {
		r.Labels = map[string]string{v1alpha1.ApplicationLabel: "shop"}
	}
	for _, name := range []string{"kept", "forced", "left", "empty"} {
		w.place(t, namespace, name, "target", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"made-`+name+`"}}`, member)
		w.synced(t, namespace, name, v1alpha1.ReasonApplied, nil)
		if name != "empty" {
			must(t, w.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "made-" + name, Name: "theirs"}}))
		}
	}
	w.place(t, namespace, "own", "target", configMap("made-empty", "own", "x"), member)
	w.synced(t, namespace, "own", v1alpha1.ReasonApplied, nil)

	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	remove := func(name string) {
		t.Helper()
		must(t, w.Delete(ctx, &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
	}
	annotate := func(name, annotation, value string) {
		t.Helper()
		resource := &v1alpha1.KubernetesApplicationResource{}
		must(t, w.Get(ctx, key(name), resource))
		before := resource.DeepCopy()
		metav1.SetMetaDataAnnotation(&resource.ObjectMeta, annotation, value)
		must(t, w.Patch(ctx, resource, client.MergeFrom(before)))
	}
	// terminating: no controller here completes the deletion of a namespace.
	terminating := func(name string, want bool) {
		t.Helper()
		made := &corev1.Namespace{}
		must(t, w.Get(ctx, types.NamespacedName{Name: "made-" + name}, made))
		if (made.DeletionTimestamp != nil) != want {
			t.Errorf("Namespace made-%s is being deleted: %t, want %t", name, made.DeletionTimestamp != nil, want)
		}
	}
	counts := func(message string) bool { return strings.Contains(message, "1 Secret") }

	remove("kept")
	w.synced(t, namespace, "kept", v1alpha1.ReasonNamespaceInUse, counts)
	terminating("kept", false)

	remove("forced")
	w.synced(t, namespace, "forced", v1alpha1.ReasonNamespaceInUse, counts)
	annotate("forced", v1alpha1.ForceAnnotation, "true")
	w.synced(t, namespace, "forced", v1alpha1.ReasonWithdrawing, nil)
	eventually(t, "Namespace made-forced to be deleted", func() (bool, string) {
		made := &corev1.Namespace{}
		must(t, w.Get(ctx, types.NamespacedName{Name: "made-forced"}, made))
		return made.DeletionTimestamp != nil, "it is not being deleted"
	})

	remove("left")
	w.synced(t, namespace, "left", v1alpha1.ReasonNamespaceInUse, counts)
	annotate("left", v1alpha1.DeletionAnnotation, string(v1alpha1.DeletionOrphan))
	eventually(t, "resource left to be gone", func() (bool, string) {
		err := w.Get(ctx, key("left"), &v1alpha1.KubernetesApplicationResource{})
		return apierrors.IsNotFound(err), "it is there"
	})
	terminating("left", false)

	remove("empty")
	w.synced(t, namespace, "empty", v1alpha1.ReasonWithdrawing, nil)
	eventually(t, "Namespace made-empty to be deleted", func() (bool, string) {
		made := &corev1.Namespace{}
		must(t, w.Get(ctx, types.NamespacedName{Name: "made-empty"}, made))
		return made.DeletionTimestamp != nil, "it is not being deleted"
	})
}
