package scheduler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// customs knows what targets let in.
type customs struct {
	frontier policies.Frontier
	kinds    meta.RESTMapper // of the hub
}

// clusterScoped is a policies.Scope. A kind that the hub does not have may exist
// on the target, which is asked before anything is sent there.
func (c customs) clusterScoped(kind schema.GroupVersionKind) bool {
	mapping, err := c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
}

// members are an application's resources.
func members(ctx context.Context, hub client.Reader, app *v1alpha2.KubernetesApplication) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	err := hub.List(ctx, &list, client.InNamespace(app.Namespace), client.MatchingLabels{v1alpha1.ApplicationLabel: app.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the resources of application %s: %w", client.ObjectKeyFromObject(app), err)
	}
	return list.Items, nil
}

// cargo is what an application sends. One that Portico made for native objects
// sends nothing until the first of them is a member: where it may go cannot be
// told before, and it makes no second choice.
func (c customs) cargo(ctx context.Context, hub client.Reader, app *v1alpha2.KubernetesApplication) (_ []policies.Cargo, ready bool, _ error) {
	resources, err := members(ctx, hub, app)
	if err != nil {
		return nil, false, err
	}
	sends := policies.CargoOfResources(resources, c.clusterScoped)
	sends = append(sends, policies.CargoOfApplication(app, c.clusterScoped)...)
	return sends, len(resources) > 0 || app.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor, nil
}

// created passes what is new.
func created() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// firstMember is the application that a new resource joins, and that may have
// waited for it.
func firstMember(_ context.Context, object client.Object) []reconcile.Request {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok || resource.Spec.TargetRef != nil || resource.DeletionTimestamp != nil {
		return nil
	}
	name, member := resource.Labels[v1alpha1.ApplicationLabel]
	if !member {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: resource.Namespace, Name: name}}}
}
