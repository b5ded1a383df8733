package policy

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies/survey"
)

// World reads what exists from a cache, whose objects it shares. exempt is
// Portico's own namespace.
func World(ctx context.Context, cached client.Reader, exempt string) (*survey.World, error) {
	w := &survey.World{Exempt: exempt}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	var targets v1alpha1.KubernetesTargetList
	var applications v1alpha2.KubernetesApplicationList
	var resources v1alpha1.KubernetesApplicationResourceList
	lists := []client.ObjectList{namespaces, &targets, &applications, &resources}
	var natives []*unstructured.UnstructuredList
	labelled := client.MatchingLabels{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote}
	for _, kind := range kinds.All {
		gvk := kind.GroupVersionKind()
		content := kinds.HasContent(gvk)
		gvk.Kind += "List"
		if content {
			found := &metav1.PartialObjectMetadataList{}
			found.SetGroupVersionKind(gvk)
			if err := cached.List(ctx, found, labelled, client.UnsafeDisableDeepCopy); err != nil {
				return nil, fmt.Errorf("listing what exists: %w", err)
			}
			for i := range found.Items {
				w.Natives = append(w.Natives, known(kind, &found.Items[i]))
			}
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		natives = append(natives, list)
		lists = append(lists, list)
	}
	for _, list := range lists {
		if err := cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing what exists: %w", err)
		}
	}
	w.Namespaces, w.Targets, w.Applications, w.Resources = namespaces.Items, targets.Items, applications.Items, resources.Items
	for _, list := range natives {
		w.Natives = append(w.Natives, list.Items...)
	}
	return w, nil
}

// known is what a cache has of an object that is all content.
func known(kind kinds.Kind, metadata *metav1.PartialObjectMetadata) unstructured.Unstructured {
	out := kinds.New(kind)
	out.SetNamespace(metadata.Namespace)
	out.SetName(metadata.Name)
	out.SetUID(metadata.UID)
	out.SetLabels(metadata.Labels)
	out.SetAnnotations(metadata.Annotations)
	out.SetCreationTimestamp(metadata.CreationTimestamp)
	out.SetDeletionTimestamp(metadata.DeletionTimestamp)
	return *out
}
