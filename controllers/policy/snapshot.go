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
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/simulate"
)

// Snapshot reads the objects for which policies are evaluated from a cache. It shares
// the objects of the cache, so they must not be changed.
func Snapshot(ctx context.Context, cached client.Reader, defaults policies.AllowDefaults) (*simulate.Snapshot, error) {
	out := &simulate.Snapshot{AllowDefaults: defaults}
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
				return nil, fmt.Errorf("listing the objects for policies: %w", err)
			}
			for i := range found.Items {
				out.Objects = append(out.Objects, simulate.NativeFromMetadata(kind, &found.Items[i]))
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
			return nil, fmt.Errorf("listing the objects for policies: %w", err)
		}
	}
	out.Targets, out.Resources = targets.Items, resources.Items
	for i := range namespaces.Items {
		out.Namespaces = append(out.Namespaces, &corev1.Namespace{ObjectMeta: namespaces.Items[i].ObjectMeta})
	}
	for i := range applications.Items {
		out.Applications = append(out.Applications, &applications.Items[i])
	}
	for _, list := range natives {
		for i := range list.Items {
			out.Objects = append(out.Objects, &list.Items[i])
		}
	}
	return out, nil
}
