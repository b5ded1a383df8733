package reconciler

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// OrphaningOwners are the objects of one kind that are deleted with
// --cascade=orphan, until their dependents have no owner. The zero value is ready.
//
// Garbage collection removes the owner references, but only from objects that it
// knows. It learns of a new definition with its next resync, up to 30 seconds
// later. An object that it learns of after the deletion of the owner is deleted.
// So the controllers of owners remove the references themselves.
//
// The process may lose this memory: an object that still has the finalizer "orphan"
// is seen again after a restart.
type OrphaningOwners struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]types.UID
}

// Handler records and queues an owner when its event arrives, because garbage
// collection may remove the object before a worker reads it.
func (o *OrphaningOwners) Handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	remember := func(object client.Object, q queue) {
		if object.GetDeletionTimestamp() == nil || !slices.Contains(object.GetFinalizers(), metav1.FinalizerOrphanDependents) {
			return
		}
		key := client.ObjectKeyFromObject(object)
		o.mu.Lock()
		if o.byKey == nil {
			o.byKey = map[types.NamespacedName]types.UID{}
		}
		o.byKey[key] = object.GetUID()
		o.mu.Unlock()
		q.Add(reconcile.Request{NamespacedName: key})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { remember(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { remember(e.ObjectNew, q) },
	}
}

// UID returns the UID of an owner that is, or was, deleted with --cascade=orphan.
func (o *OrphaningOwners) UID(key types.NamespacedName) (types.UID, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	uid, ok := o.byKey[key]
	return uid, ok
}

// Forget removes the record of an owner. The record of another owner of the same name
// is kept.
func (o *OrphaningOwners) Forget(key types.NamespacedName, uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byKey[key] == uid {
		delete(o.byKey, key)
	}
}

// ForgetGone removes the record of an owner that does not exist, and that has no
// dependents.
func (o *OrphaningOwners) ForgetGone(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byKey, key)
}

// RemoveOwner removes the references to an owner from an object.
func (w Writer) RemoveOwner(ctx context.Context, object client.Object, owner types.UID) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return nil // the type of the object is not registered
	}
	object.SetOwnerReferences(slices.DeleteFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner }))
	_, err := w.Patch(ctx, before, object, "removing the owner of")
	return err
}
