package scheduler

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/placement"
)

// leaves is the target that an object is asked to move off. It stays asked for
// until the object has another target, or somebody takes it back.
func leaves(object client.Object) (target string, asked bool) {
	target, asked = object.GetAnnotations()[v1alpha1.MoveFromAnnotation]
	return target, asked
}

// stays is the condition of an object, an application or a resource, that cannot
// move.
func stays(object client.Object, what, from string, decision placement.Decision) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.Scheduled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCannotMove, ObservedGeneration: object.GetGeneration(),
		Message: fmt.Sprintf("%s %s stays on target %s, which it is to leave: %s", what, object.GetName(), from, decision.Why(object.GetNamespace())),
	}
}

// left passes a resource that has left its last target: its application may move
// on.
func left() predicate.Predicate {
	none := func(event.CreateEvent) bool { return false }
	return predicate.Funcs{
		CreateFunc: none,
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*v1alpha1.KubernetesApplicationResource)
			is, ok2 := e.ObjectNew.(*v1alpha1.KubernetesApplicationResource)
			return ok && ok2 && was.Spec.LeavingTargetRef != nil && is.Spec.LeavingTargetRef == nil
		},
	}
}

func applicationOf(_ context.Context, resource client.Object) []reconcile.Request {
	name, member := resource.GetLabels()[v1alpha1.ApplicationLabel]
	if !member {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: resource.GetNamespace(), Name: name}}}
}
