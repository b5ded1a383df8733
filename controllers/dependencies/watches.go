package dependencies

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// nativeChanged passes the changes of an object that are sent. The ServiceAccount
// "default" is not sent.
func nativeChanged() predicate.Predicate {
	return predicate.And(
		predicate.NewPredicateFuncs(func(object client.Object) bool {
			_, isAccount := object.(*corev1.ServiceAccount)
			return !isAccount || object.GetName() != kinds.DefaultServiceAccount
		}),
		reconciler.Updated(func(before, after client.Object) bool {
			return before.GetResourceVersion() != after.GetResourceVersion()
		}))
}

// needsChanged passes the changes of resources that may change the dependencies of a
// target.
func needsChanged() predicate.Predicate {
	return reconciler.Updated(func(before, after *v1alpha1.KubernetesApplicationResource) bool {
		return reconciler.IntentChanged(before, after) || !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
			!equality.Semantic.DeepEqual(before.Status.Dependencies, after.Status.Dependencies)
	})
}

// dependenciesOf returns the objects of the controller's kind that a resource needs, or
// sends.
func (c *Controller) dependenciesOf(_ context.Context, object client.Object) []reconcile.Request {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	var out []reconcile.Request
	for _, d := range slices.Concat(resource.Spec.Dependencies, resource.Status.Dependencies) {
		if d.Shared && d.Kind == c.kind.name {
			out = append(out, requestFor(resource.Namespace, d.Name))
		}
	}
	if owner := policies.DependencyOwner(resource); owner != nil && owner.Kind == c.kind.name && policies.IsSharedDependency(resource) {
		out = append(out, requestFor(resource.Namespace, owner.Name))
	}
	return out
}

// accountsOfBinding returns the ServiceAccounts that a RoleBinding names.
func accountsOfBinding(_ context.Context, object client.Object) []reconcile.Request {
	binding, ok := object.(*rbacv1.RoleBinding)
	if !ok {
		return nil
	}
	var out []reconcile.Request
	for _, name := range kinds.AccountsOf(binding) {
		out = append(out, requestFor(binding.Namespace, name))
	}
	return out
}

// accountsThatNeed returns the ServiceAccounts that need the object of a resource.
func (c *Controller) accountsThatNeed(ctx context.Context, object client.Object) []reconcile.Request {
	owner := policies.DependencyOwner(object)
	if owner == nil {
		return nil
	}
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.hub.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy,
		client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(owner.Kind, owner.Name)})
	if err != nil {
		return nil // the cache has stopped
	}
	var out []reconcile.Request
	for i := range list.Items {
		if account := policies.DependencyOwner(&list.Items[i]); account != nil && account.Kind == kinds.ServiceAccountKind {
			out = append(out, requestFor(object.GetNamespace(), account.Name))
		}
	}
	return out
}

func requestFor(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

// IndexSubjects is the index function of policies.SubjectIndex.
func IndexSubjects(object client.Object) []string {
	binding, ok := object.(*rbacv1.RoleBinding)
	if !ok {
		return nil
	}
	return kinds.AccountsOf(binding)
}
