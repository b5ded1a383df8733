// Package namespaceobjects counts the objects of others in a namespace of a target.
// They would be deleted together with the namespace.
package namespaceobjects

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/policies"
)

// countedKinds are the kinds that are counted.
var countedKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Pod"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	batchv1.SchemeGroupVersion.WithKind("Job"),
	batchv1.SchemeGroupVersion.WithKind("CronJob"),
}

// At most maxPages pages of each kind are counted.
const (
	pageSize = 500
	maxPages = 4
)

// counter counts objects in a namespace of a target.
type counter struct {
	target    client.Reader
	namespace string
	hubID     string
	// isKnown tells whether a resource owns an object of this hub that does not count.
	isKnown func(types.NamespacedName) bool
	counts  policies.ObjectCounts
}

// count counts the objects of a kind. Kinds that the target lacks, or that Portico may not
// list there, are skipped.
func (c *counter) count(ctx context.Context, gvk schema.GroupVersionKind) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	for range maxPages {
		err := c.target.List(ctx, list, client.InNamespace(c.namespace), client.Limit(pageSize), client.Continue(list.Continue))
		switch {
		case apierrors.IsForbidden(err):
			c.counts.Hidden = append(c.counts.Hidden, gvk.Kind)
			return nil
		case meta.IsNoMatchError(err):
			return nil
		case err != nil:
			return fmt.Errorf("listing %s in namespace %s: %w", gvk.Kind, c.namespace, err)
		}
		n := 0
		for i := range list.Items {
			if c.isCounted(gvk.Kind, &list.Items[i]) {
				n++
			}
		}
		c.counts.Add(gvk.Kind, n)
		if list.Continue == "" {
			return nil
		}
	}
	c.counts.More = true
	return nil
}

// isCounted tells whether an object is counted. An object with a controller is not
// counted, because it is deleted with the controller.
func (c *counter) isCounted(kind string, object *metav1.PartialObjectMetadata) bool {
	known := object.Labels[v1alpha1.ManagedByLabel] == c.hubID && c.isKnown(clusters.ResourceOf(object))
	return !known && object.DeletionTimestamp == nil && metav1.GetControllerOf(object) == nil && !isCreatedByKubernetes(kind, object)
}

// isCreatedByKubernetes tells whether Kubernetes creates an object in each namespace.
func isCreatedByKubernetes(kind string, object metav1.Object) bool {
	_, token := object.GetAnnotations()[corev1.ServiceAccountNameKey]
	return kind == "ConfigMap" && object.GetName() == "kube-root-ca.crt" || kind == "Secret" && token
}

// Count counts the objects of others in the Namespace that a resource created on a target.
func Count(ctx context.Context, hub, target client.Reader, resource *v1alpha1.KubernetesApplicationResource, on, hubID string) (policies.ObjectCounts, error) {
	var all v1alpha1.KubernetesApplicationResourceList
	if err := hub.List(ctx, &all, client.InNamespace(resource.Namespace)); err != nil {
		return policies.ObjectCounts{}, fmt.Errorf("listing resources: %w", err)
	}
	own, others := policies.OthersInNamespace(resource, on, all.Items)
	c := counter{target: target, namespace: policies.NamespaceOf(resource), hubID: hubID,
		isKnown: func(key types.NamespacedName) bool { return own[key] || others[key] }}
	for _, gvk := range countedKinds {
		if err := c.count(ctx, gvk); err != nil {
			return c.counts, err
		}
	}
	c.counts.Add("KubernetesApplicationResource", len(others))
	return c.counts, nil
}
