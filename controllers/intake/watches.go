package intake

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// intentChanged passes the updates of a user, and none of a status.
func intentChanged() predicate.Predicate {
	return reconciler.Updated(func(before, after *unstructured.Unstructured) bool {
		return reconciler.IntentChanged(before, after) || !equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"])
	})
}

// resourceChanged passes the updates of a resource for which its native object waits.
func resourceChanged() predicate.Predicate {
	return reconciler.Updated(func(before, after *v1alpha1.KubernetesApplicationResource) bool {
		return before.Generation != after.Generation ||
			before.Status.ObservedHubGeneration != after.Status.ObservedHubGeneration ||
			meta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.Ready) != meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.Ready)
	})
}

// remoteContentChanged passes the changes of Secrets and ConfigMaps that have, or had,
// the label.
func remoteContentChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return kinds.HasRemoteLabel(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return kinds.HasRemoteLabel(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (kinds.HasRemoteLabel(e.ObjectOld) || kinds.HasRemoteLabel(e.ObjectNew)) && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
	}
}

// scheduleLabelChanged passes the changes that decide whether a Secret or ConfigMap is
// sent under its own name.
func scheduleLabelChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return kinds.HasRemoteLabel(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return kinds.HasRemoteLabel(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()
			return before[v1alpha1.ScheduleLabel] != after[v1alpha1.ScheduleLabel] || before[v1alpha1.ApplicationLabel] != after[v1alpha1.ApplicationLabel]
		},
	}
}

// pullSecretsChanged passes the changes of a ServiceAccount's image pull secrets.
func pullSecretsChanged() predicate.Predicate {
	return predicate.And(predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			account, ok := e.Object.(*corev1.ServiceAccount)
			return ok && len(account.ImagePullSecrets) > 0
		},
	}, reconciler.Updated(func(before, after *corev1.ServiceAccount) bool {
		return !equality.Semantic.DeepEqual(before.ImagePullSecrets, after.ImagePullSecrets)
	}))
}

// withRBACChanged passes the changes of a namespace after which the Roles of its
// ServiceAccounts are sent that were not, or the reverse.
func withRBACChanged() predicate.Predicate {
	return reconciler.UpdatedOnly(func(before, after *metav1.PartialObjectMetadata) bool {
		return reconciler.AnnotationsChanged(before, after, v1alpha1.WithRBACAnnotation)
	})
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return out
}

// membersOfApplication returns the native objects of an application.
func (c *Controller) membersOfApplication(ctx context.Context, app client.Object) []reconcile.Request {
	resources, err := c.listResources(ctx, app.GetNamespace(), app.GetName())
	if err != nil {
		return nil // the cache has stopped
	}
	return c.nativesOf(resources)
}

// nativesOf returns the native objects of the controller's kind that control resources.
func (c *Controller) nativesOf(resources []v1alpha1.KubernetesApplicationResource) []reconcile.Request {
	var out []reconcile.Request
	for i := range resources {
		owner := metav1.GetControllerOf(&resources[i])
		if owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == c.kind.GroupVersionKind().GroupKind() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: resources[i].Namespace, Name: owner.Name}})
		}
	}
	return out
}

// dependentsOf returns the native objects whose Pods refer to a Secret or ConfigMap. object
// is that Secret or ConfigMap, or a resource that sends it.
func (c *Controller) dependentsOf(ctx context.Context, object client.Object) []reconcile.Request {
	kind, name := object.GetObjectKind().GroupVersionKind().Kind, object.GetName()
	if resource, ok := object.(*v1alpha1.KubernetesApplicationResource); ok {
		owner := policies.DependencyOwner(resource)
		if owner == nil {
			return nil
		}
		kind, name = owner.Kind, owner.Name
	}
	list, err := c.listDependents(ctx, kind, &metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: name})
	if err != nil {
		return nil // the cache has stopped
	}
	return c.nativesOf(list)
}

// serviceAccountIndex finds native objects by the ServiceAccount of their Pods.
const serviceAccountIndex = "spec.template.spec.serviceAccountName"

func indexServiceAccount(object client.Object) []string {
	native, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if name := references.ServiceAccount(native); name != "" {
		return []string{name}
	}
	return nil
}

// listNatives lists objects of the controller's kind in the cache, which has those with
// the label.
func (c *Controller) listNatives(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &unstructured.UnstructuredList{}
	gvk := c.kind.GroupVersionKind()
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := c.hub.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // the cache has stopped
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		if kinds.IsRemote(&list.Items[i]) { // a ReplicaSet of a Deployment has the label, and is not sent
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
