package intake

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Of a ServiceAccount, which does not travel, only the image pull secrets are
// read: on the hub its Pods would get them.
//
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch

// dependenciesOf lists the Secrets and ConfigMaps that an object's Pods refer
// to, and makes its template refer to the copies that its resource takes along.
// Nobody asked for a ServiceAccount's pull secrets by name, and Pods start
// without them, so they are not waited for. What travels by itself is referred to
// as it is.
func dependenciesOf(template *unstructured.Unstructured, resource string, pullSecrets []string, others travellers) []v1alpha1.Dependency {
	named := kinds.References(template)
	kinds.SetPullSecrets(template, pullSecrets)
	var out []v1alpha1.Dependency
	for _, r := range kinds.References(template) {
		byName := slices.ContainsFunc(named, func(n kinds.Reference) bool { return n.Kind == r.Kind && n.Name == r.Name })
		out = append(out, v1alpha1.Dependency{Kind: r.Kind, Name: r.Name, Optional: r.Optional || !byName, Native: others.has(r)})
	}
	kinds.Rewrite(template, func(r kinds.Reference) string {
		if others.has(r) {
			return r.Name
		}
		return kinds.CopyName(resource, r.Name)
	})
	return out
}

// pullSecrets are those of the ServiceAccount of an object's Pods.
func (c *Controller) pullSecrets(ctx context.Context, native *unstructured.Unstructured) ([]string, error) {
	name := kinds.ServiceAccount(native)
	if name == "" {
		return nil, nil
	}
	account := &corev1.ServiceAccount{}
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: native.GetNamespace(), Name: name}, account)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ServiceAccount %s: %w", name, err)
	}
	var out []string
	for _, secret := range account.ImagePullSecrets {
		if secret.Name != "" {
			out = append(out, secret.Name)
		}
	}
	return out, nil
}

// ofAccount are the native objects whose Pods have a ServiceAccount.
func (c *Controller) ofAccount(ctx context.Context, account client.Object) []reconcile.Request {
	list := &unstructured.UnstructuredList{}
	gvk := c.kind.GroupVersionKind()
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := c.hub.List(ctx, list, client.InNamespace(account.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped
	}
	var out []reconcile.Request
	for i := range list.Items {
		if kinds.ServiceAccount(&list.Items[i]) == account.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// pulls passes the changes of a ServiceAccount's image pull secrets.
func pulls() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			account, ok := e.Object.(*corev1.ServiceAccount)
			return ok && len(account.ImagePullSecrets) > 0
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*corev1.ServiceAccount)
			is, ok2 := e.ObjectNew.(*corev1.ServiceAccount)
			return ok && ok2 && !equality.Semantic.DeepEqual(was.ImagePullSecrets, is.ImagePullSecrets)
		},
	}
}
