package intake

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Secrets and ConfigMaps that are labelled travel under their own names. What is
// in the same application is on the same target, so its Pods refer to them there
// as they do here, and take no copy along.

// travellers are the Secrets and ConfigMaps, of those that an object refers to,
// that are on its target anyway.
type travellers map[traveller]bool

type traveller struct{ kind, name string }

func (t travellers) has(r kinds.Reference) bool { return t[traveller{r.Kind, r.Name}] }

// travellers finds them.
func (c *Controller) travellers(ctx context.Context, native *unstructured.Unstructured, namespace metav1.Object, application string, pullSecrets []string) (travellers, error) {
	named := kinds.References(native)
	for _, name := range pullSecrets {
		named = append(named, kinds.Reference{Kind: kinds.SecretKind, Name: name})
	}
	out := travellers{}
	for _, r := range named {
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(contentKind(r.Kind).GroupVersionKind())
		err := c.hub.Get(ctx, client.ObjectKey{Namespace: native.GetNamespace(), Name: r.Name}, metadata)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("looking for %s %s: %w", r.Kind, r.Name, err)
		}
		if err != nil || !labelled(metadata) {
			continue
		}
		with, err := c.applicationOf(ctx, r, metadata, namespace)
		if err != nil {
			return nil, err
		}
		if with == application {
			out[traveller{r.Kind, r.Name}] = true
		}
	}
	return out, nil
}

// applicationOf is where a Secret or ConfigMap travels, or will.
func (c *Controller) applicationOf(ctx context.Context, r kinds.Reference, metadata, namespace metav1.Object) (string, error) {
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
		return "", nil // it goes nowhere
	}
	return member.Application, nil
}

func contentKind(kind string) kinds.Kind {
	if kind == kinds.ConfigMapKind {
		return kinds.ConfigMap{}
	}
	return kinds.Secret{}
}

func labelled(object metav1.Object) bool {
	return object.GetLabels()[v1alpha1.ScheduleLabel] == v1alpha1.ScheduleRemote
}

// needing lists the resources that need a Secret or ConfigMap, or stand for it.
func (c *Controller) needing(ctx context.Context, kind string, object metav1.Object) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.hub.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(kind, object.GetName())})
	if err != nil {
		return nil, fmt.Errorf("listing who needs %s %s: %w", kind, object.GetName(), err)
	}
	return list.Items, nil
}

// referringTo finds the native objects whose Pods refer to a Secret or ConfigMap.
func (c *Controller) referringTo(content kinds.Kind) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		list, err := c.needing(ctx, content.GroupVersionKind().Kind, object)
		if err != nil {
			return nil // the cache has stopped
		}
		var out []reconcile.Request
		for i := range list {
			owner := metav1.GetControllerOf(&list[i])
			if owner != nil && owner.Kind == c.kind.GroupVersionKind().Kind {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}})
			}
		}
		return out
	}
}

// stillNeeded tells whether something on the target refers to a Secret or
// ConfigMap under its own name, until it has a copy instead.
func (c *Controller) stillNeeded(ctx context.Context, native *unstructured.Unstructured) (bool, error) {
	list, err := c.needing(ctx, native.GetKind(), native)
	if err != nil {
		return false, err
	}
	for i := range list {
		if refers(&list[i], native.GetKind(), native.GetName()) {
			return true, nil
		}
	}
	return false, nil
}

// refers tells whether a resource refers to something under its own name, or may
// do so still on a target that has not seen its last change.
func refers(resource *v1alpha1.KubernetesApplicationResource, kind, name string) bool {
	if resource.DeletionTimestamp != nil || resource.Spec.TargetRef == nil {
		return false
	}
	for _, need := range resource.Spec.Dependencies {
		if need.Kind != kind || need.Name != name {
			continue
		}
		synced := meta.FindStatusCondition(resource.Status.Conditions, v1alpha1.Synced)
		return need.Native || synced != nil && synced.ObservedGeneration < resource.Generation &&
			meta.IsStatusConditionTrue(resource.Status.Conditions, v1alpha1.TargetReachable)
	}
	return false
}

// announced passes the changes of Secrets and ConfigMaps that are, or were,
// labelled.
func announced() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return labelled(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return labelled(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (labelled(e.ObjectOld) || labelled(e.ObjectNew)) && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
	}
}

// relabelled passes the changes after which one travels by itself that did not,
// or the reverse.
func relabelled() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return labelled(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return labelled(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			says := func(o client.Object) [2]string {
				return [2]string{o.GetLabels()[v1alpha1.ScheduleLabel], o.GetLabels()[v1alpha1.ApplicationLabel]}
			}
			return !equality.Semantic.DeepEqual(says(e.ObjectOld), says(e.ObjectNew))
		},
	}
}
