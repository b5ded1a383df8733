package reconciler

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Updated passes the updates for which changed returns true, and every other event. An
// object of another type than T passes.
func Updated[T client.Object](changed func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return !ok || !ok2 || changed(before, after)
	}}
}

// UpdatedOnly passes the updates for which changed returns true, and no other event.
func UpdatedOnly[T client.Object](changed func(before, after T) bool) predicate.Predicate {
	return predicate.And(onlyUpdates, Updated(changed))
}

// Remote passes events of native objects that are, or were, sent to a target. An object
// that is not unstructured passes.
func Remote() predicate.Predicate {
	remote := func(object client.Object) bool {
		native, ok := object.(*unstructured.Unstructured)
		return !ok || kinds.IsRemote(native)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return remote(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return remote(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return remote(e.ObjectOld) || remote(e.ObjectNew) },
	}
}

// Deleted passes only deletions.
func Deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

var onlyUpdates = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// DeletionStarted tells whether the deletion of an object began with this update.
func DeletionStarted(before, after client.Object) bool {
	return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// IntentChanged distinguishes an update by a user from an update of the status: the
// generation, labels, annotations or the start of the deletion changed.
func IntentChanged(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		DeletionStarted(before, after) ||
		!equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) ||
		!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations())
}

// AnnotationsChanged tells whether one of the named annotations differs.
func AnnotationsChanged(before, after client.Object, keys ...string) bool {
	for _, key := range keys {
		if before.GetAnnotations()[key] != after.GetAnnotations()[key] {
			return true
		}
	}
	return false
}

// TakenChanged passes the resources of shared dependencies whose name became taken on the
// target, or free.
func TakenChanged() predicate.Predicate {
	return UpdatedOnly(func(before, after *v1alpha1.KubernetesApplicationResource) bool {
		return policies.IsTaken(before) != policies.IsTaken(after)
	})
}
