package dependencies

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// accountChanged passes the changes of a ServiceAccount that are sent.
func accountChanged() predicate.Predicate {
	return predicate.And(
		predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() != kinds.DefaultServiceAccount }),
		reconciler.Updated(func(before, after *corev1.ServiceAccount) bool {
			return reconciler.IntentChanged(before, after) ||
				!equality.Semantic.DeepEqual(before.ImagePullSecrets, after.ImagePullSecrets) ||
				!equality.Semantic.DeepEqual(before.AutomountServiceAccountToken, after.AutomountServiceAccountToken)
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

// dependenciesOf returns the ServiceAccounts that a resource needs, or sends.
func dependenciesOf(_ context.Context, object client.Object) []reconcile.Request {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: resource.Namespace, Name: name}}
	}
	var out []reconcile.Request
	for _, d := range slices.Concat(resource.Spec.Dependencies, resource.Status.Dependencies) {
		if d.Shared && d.Kind == kinds.ServiceAccountKind {
			out = append(out, request(d.Name))
		}
	}
	if owner := policies.DependencyOwner(resource); owner != nil && owner.Kind == kinds.ServiceAccountKind && policies.IsSharedDependency(resource) {
		out = append(out, request(owner.Name))
	}
	return out
}
