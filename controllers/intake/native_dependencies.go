package intake

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// Secrets and ConfigMaps with the label are sent under their own names. Pods of the same
// application run on the same target, so they refer to them by these names and need no
// copy.

// findNativeDependencies returns the native dependencies of an object, pull secrets
// included.
func (c *Controller) findNativeDependencies(ctx context.Context, native *unstructured.Unstructured, namespace metav1.Object, application string, pullSecrets []string) (dependencySet, error) {
	out := dependencySet{}
	for _, r := range withPullSecrets(native, pullSecrets) {
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(kindWithContent(r.Kind).GroupVersionKind())
		err := c.hub.Get(ctx, client.ObjectKey{Namespace: native.GetNamespace(), Name: r.Name}, metadata)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading %s %s: %w", r.Kind, r.Name, err)
		}
		if err != nil || !kinds.HasRemoteLabel(metadata) {
			continue
		}
		other, err := c.applicationOfDependency(ctx, r, metadata, namespace)
		if err != nil {
			return nil, err
		}
		if other == application {
			out[dependencyKey{r.Kind, r.Name}] = true
		}
	}
	return out, nil
}

// applicationOfDependency returns the application of a Secret or ConfigMap with the label.
func (c *Controller) applicationOfDependency(ctx context.Context, r references.Reference, metadata, namespace metav1.Object) (string, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: metadata.GetNamespace(), Name: kinds.ResourceName(r.Kind, r.Name)}
	err := c.hub.Get(ctx, key, resource)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading resource %s: %w", key, err)
	}
	if application, named := resource.Labels[v1alpha1.ApplicationLabel]; named && metav1.IsControlledBy(resource, metadata) {
		return application, nil
	}
	member, malformed := policies.MembershipOf(metadata, namespace)
	if len(malformed) > 0 {
		return "", nil // it is not sent to a target
	}
	return member.Application, nil
}

func kindWithContent(kind string) kinds.Kind {
	if kind == references.ConfigMapKind {
		return kinds.ConfigMap{}
	}
	return kinds.Secret{}
}

// listDependents lists the resources that depend on a Secret or ConfigMap, and its own
// resource. The cache owns them.
func (c *Controller) listDependents(ctx context.Context, kind string, object metav1.Object) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.hub.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(kind, object.GetName())}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the dependents of %s %s: %w", kind, object.GetName(), err)
	}
	return list.Items, nil
}

// isReferencedOnTarget tells whether an object on the target refers to a Secret or
// ConfigMap under its own name.
func (c *Controller) isReferencedOnTarget(ctx context.Context, native *unstructured.Unstructured) (bool, error) {
	list, err := c.listDependents(ctx, native.GetKind(), native)
	if err != nil {
		return false, err
	}
	for i := range list {
		if refersOnTarget(&list[i], native.GetKind(), native.GetName()) {
			return true, nil
		}
		if waits, err := waitsForSender(ctx, c.hub, &list[i], native); err != nil || waits {
			return waits, err
		}
	}
	return false, nil
}

// waitsForSender tells whether a resource needs a Secret or ConfigMap as a shared
// dependency, and the resource that sends it then does not share the object yet.
func waitsForSender(ctx context.Context, hub client.Reader, resource *v1alpha1.KubernetesApplicationResource, native *unstructured.Unstructured) (bool, error) {
	if resource.DeletionTimestamp != nil || resource.Spec.TargetRef == nil || !policies.NeedsShared(resource, native.GetKind(), native.GetName()) ||
		!meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.TargetReachable) {
		return false, nil
	}
	sender := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: resource.Namespace, Name: kinds.DependencyName(native.GetKind(), native.GetName(), resource.Spec.TargetRef.Name)}
	_, err := reconciler.Find(ctx, hub, key, sender)
	return sender.Status.RemoteUID == "", err
}

// refersOnTarget tells whether a resource refers to a Secret or ConfigMap under its own
// name, or may still do so on a target that does not have the last change.
func refersOnTarget(resource *v1alpha1.KubernetesApplicationResource, kind, name string) bool {
	if resource.DeletionTimestamp != nil || resource.Spec.TargetRef == nil {
		return false
	}
	for _, dependency := range resource.Spec.Dependencies {
		if dependency.Kind != kind || dependency.Name != name {
			continue
		}
		synced := meta.FindStatusCondition(resource.Status.Conditions, v1alpha1.Synced)
		return dependency.Native || synced != nil && synced.ObservedGeneration < resource.Generation &&
			meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.TargetReachable)
	}
	return false
}
