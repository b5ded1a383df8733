package scheduler

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/placement"
)

// customs knows what targets let in.
type customs struct {
	frontier policies.Frontier
	scope    policies.Scope // of the hub
}

// around is what placing something in a namespace takes.
func (c customs) around(ctx context.Context, hub client.Reader, namespace string) (placement.Surroundings, error) {
	var targets v1alpha1.KubernetesTargetList
	if err := hub.List(ctx, &targets, client.InNamespace(namespace)); err != nil {
		return placement.Surroundings{}, fmt.Errorf("listing targets: %w", err)
	}
	var resources v1alpha1.KubernetesApplicationResourceList
	if err := hub.List(ctx, &resources, client.InNamespace(namespace)); err != nil {
		return placement.Surroundings{}, fmt.Errorf("listing resources: %w", err)
	}
	return placement.Surroundings{Targets: targets.Items, Resources: resources.Items, Frontier: c.frontier, Scope: c.scope}, nil
}

// ready tells an application that can be placed. One that Portico made for native
// objects sends nothing until the first of them is a member: where it may go
// cannot be told before, and it makes no second choice.
func ready(app *v1alpha2.KubernetesApplication, members []v1alpha1.KubernetesApplicationResource) bool {
	return len(members) > 0 || app.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor
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
