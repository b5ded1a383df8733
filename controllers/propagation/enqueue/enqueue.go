// Package enqueue finds the resources that are affected by an event on the hub or on a
// target.
package enqueue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/targetqueue"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// Enqueuer watches the hub, listens to the targets, and enqueues the affected
// resources.
type Enqueuer struct {
	Queues   *targetqueue.Queues
	Cache    cache.Cache
	Clusters *clusters.Clusters
	Memory   *memory.Memory
	Metrics  *memory.Metrics
}

// WatchResources enqueues resources that changed, and those that depend on them.
func (e *Enqueuer) WatchResources(ctx context.Context) error {
	return e.watch(ctx, &v1alpha1.KubernetesApplicationResource{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if resource, ok := object.(*v1alpha1.KubernetesApplicationResource); ok {
				e.Metrics.SetDrifted(resource)
				e.trackTargets(nil, resource)
				e.enqueueReadyToLeave(resource.Namespace, e.Memory.Progress.Set(resource))
				e.Enqueue(resource, false)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok := before.(*v1alpha1.KubernetesApplicationResource)
			is, ok2 := after.(*v1alpha1.KubernetesApplicationResource)
			if !ok || !ok2 {
				return
			}
			e.Metrics.SetDrifted(is)
			e.trackTargets(was, is)
			if needsReconcile(was, is) {
				e.Enqueue(is, false)
			}
			e.enqueueMoving(was, is)
			e.enqueueMembers(was, is)
			e.enqueueContentDependents(was, is)
			e.enqueueAutoscalers(was, is)
		},
		DeleteFunc: func(object any) {
			resource, ok := deleted(object).(*v1alpha1.KubernetesApplicationResource)
			if !ok {
				return
			}
			e.Memory.Writes.Delete(resource.UID)
			e.Metrics.DeleteDrifted(client.ObjectKeyFromObject(resource))
			e.trackTargets(resource, nil)
			e.enqueueReadyToLeave(resource.Namespace, e.Memory.Progress.Delete(client.ObjectKeyFromObject(resource)))
			e.enqueueMembers(nil, resource)
			e.enqueueScaled(resource)
			if owner := policies.DependencyOwner(resource); owner != nil {
				e.enqueueDependents(owner.Kind, &metav1.ObjectMeta{Namespace: resource.Namespace, Name: owner.Name})
			}
		},
	})
}

// WatchTargets enqueues the resources on a target whose spec.allow changed.
func (e *Enqueuer) WatchTargets(ctx context.Context) error {
	return e.watch(ctx, &v1alpha1.KubernetesTarget{}, toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		was, ok := before.(*v1alpha1.KubernetesTarget)
		is, ok2 := after.(*v1alpha1.KubernetesTarget)
		if ok && ok2 && !equality.Semantic.DeepEqual(was.Spec.Allow, is.Spec.Allow) {
			e.TargetChanged(client.ObjectKeyFromObject(is))
		}
	}})
}

// WatchNamespaces enqueues the resources in a namespace whose drift policy changed.
func (e *Enqueuer) WatchNamespaces(ctx context.Context) error {
	return e.watch(ctx, plan.MetadataOf(corev1.SchemeGroupVersion.WithKind("Namespace")), toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		was, ok := before.(*metav1.PartialObjectMetadata)
		is, ok2 := after.(*metav1.PartialObjectMetadata)
		if ok && ok2 && reconciler.AnnotationsChanged(was, is, v1alpha1.DriftAnnotation) {
			e.enqueueListed(is.Name, nil, true, nil)
		}
	}})
}

// WatchSources enqueues the resources that depend on a changed Secret or ConfigMap, or on
// an object of another kind that was created or deleted.
func (e *Enqueuer) WatchSources(ctx context.Context) error {
	for _, gvk := range plan.DependencyKinds {
		err := e.watch(ctx, plan.MetadataOf(gvk), toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(object any, initial bool) {
				if !initial { // at the start every resource is enqueued
					e.enqueueDependents(gvk.Kind, object)
				}
			},
			UpdateFunc: func(before, after any) {
				was, ok := before.(*metav1.PartialObjectMetadata)
				is, ok2 := after.(*metav1.PartialObjectMetadata)
				if !ok || !ok2 || was.ResourceVersion != is.ResourceVersion {
					e.enqueueDependents(gvk.Kind, after)
				}
			},
			DeleteFunc: func(object any) {
				e.enqueueDependents(gvk.Kind, object)
				if source, ok := deleted(object).(*metav1.PartialObjectMetadata); ok {
					e.Memory.Sources.Delete(memory.SourceKey{Kind: gvk.Kind, Namespace: source.Namespace, Name: source.Name})
				}
			},
		})
		if err != nil {
			return err
		}
	}
	for kind, object := range map[string]client.Object{
		kinds.ServiceAccountKind: &corev1.ServiceAccount{}, kinds.RoleKind: &rbacv1.Role{}, kinds.RoleBindingKind: &rbacv1.RoleBinding{},
	} {
		err := e.watch(ctx, object, toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(object any, initial bool) {
				if !initial {
					e.enqueueDependents(kind, object)
				}
			},
			DeleteFunc: func(object any) { e.enqueueDependents(kind, object) },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// watch adds a handler, and waits until it has received all existing objects.
func (e *Enqueuer) watch(ctx context.Context, object client.Object, handler toolscache.ResourceEventHandler) error {
	informer, err := e.Cache.GetInformer(ctx, object)
	if err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// deleted returns the object of a deletion whose event the informer may have missed.
func deleted(object any) any {
	if missed, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		return missed.Obj
	}
	return object
}

// needsReconcile tells whether an update changed more than the status.
func needsReconcile(was, is *v1alpha1.KubernetesApplicationResource) bool {
	return was.Generation != is.Generation ||
		reconciler.DeletionStarted(was, is) ||
		kinds.HubGeneration(was) != kinds.HubGeneration(is) ||
		policies.HasForceAnnotation(was) != policies.HasForceAnnotation(is) ||
		reconciler.AnnotationsChanged(was, is, v1alpha1.MoveFromAnnotation, v1alpha1.RollAnnotation, v1alpha1.AdoptAnnotation,
			v1alpha1.DeletionAnnotation, v1alpha1.ReleaseAnnotation, v1alpha1.DriftAnnotation) ||
		!equality.Semantic.DeepEqual(was.OwnerReferences, is.OwnerReferences) ||
		!equality.Semantic.DeepEqual(was.Finalizers, is.Finalizers)
}

// TargetChanged implements clusters.Listener. It enqueues every resource on the target,
// without the backoff of earlier failures.
func (e *Enqueuer) TargetChanged(target types.NamespacedName) {
	go func() {
		e.Queues.EnqueueAll(target)
		e.enqueueLeaving(target)
	}()
}

// ProbesChanged implements clusters.Listener. The state of the target is the same, so it
// enqueues no resource.
func (e *Enqueuer) ProbesChanged(types.NamespacedName) {}

// ObjectChanged implements clusters.Listener.
func (e *Enqueuer) ObjectChanged(target, resource types.NamespacedName) {
	if !e.Queues.Enqueue(target, resource.Name, false) {
		e.StopWaitingForKind(target, resource)
	}
	e.enqueueDependentsOn(resource)
}

// trackTargets records the targets of a resource, and how many objects it has there.
// before is nil for a new resource, and after for a deleted one.
func (e *Enqueuer) trackTargets(before, after *v1alpha1.KubernetesApplicationResource) {
	targets := func(resource *v1alpha1.KubernetesApplicationResource) (names []string, objects int) {
		if resource == nil {
			return nil, 0
		}
		return policies.TargetsOf(resource), 1 + len(resource.Spec.Dependencies) + len(resource.Spec.Secrets)
	}
	was, objectsBefore := targets(before)
	is, objects := targets(after)
	if !slices.Equal(was, is) || objectsBefore != objects {
		for _, name := range is {
			e.Clusters.Expect(types.NamespacedName{Namespace: after.Namespace, Name: name}, objects)
		}
		for _, name := range was {
			e.Clusters.Expect(types.NamespacedName{Namespace: before.Namespace, Name: name}, -objectsBefore)
		}
	}
	for _, name := range is {
		e.Queues.Track(types.NamespacedName{Namespace: after.Namespace, Name: name}, after.Name)
	}
	for _, name := range was {
		if slices.Contains(is, name) {
			continue
		}
		target := types.NamespacedName{Namespace: before.Namespace, Name: name}
		e.Queues.Untrack(target, before.Name)
		e.StopWaitingForKind(target, client.ObjectKeyFromObject(before))
	}
}

// Enqueue enqueues a resource for each of its targets. fresh ends the backoff of earlier
// failures.
func (e *Enqueuer) Enqueue(resource *v1alpha1.KubernetesApplicationResource, fresh bool) {
	for _, name := range policies.TargetsOf(resource) {
		e.Queues.Enqueue(types.NamespacedName{Namespace: resource.Namespace, Name: name}, resource.Name, fresh)
	}
}

// enqueueListed enqueues the resources of a namespace that an index and a filter select.
// Both may be nil.
func (e *Enqueuer) enqueueListed(namespace string, index client.MatchingFields, fresh bool, filter func(*v1alpha1.KubernetesApplicationResource) bool) {
	options := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
	if index != nil {
		options = append(options, index)
	}
	var list v1alpha1.KubernetesApplicationResourceList
	if err := e.Cache.List(context.Background(), &list, options...); err != nil {
		return // the cache has stopped
	}
	for i := range list.Items {
		if filter == nil || filter(&list.Items[i]) {
			e.Enqueue(&list.Items[i], fresh)
		}
	}
}

// enqueueLeaving enqueues the resources that leave a target for their new targets as
// well, because their condition Scheduled tells whether the old target is reachable.
func (e *Enqueuer) enqueueLeaving(target types.NamespacedName) {
	e.enqueueListed(target.Namespace, client.MatchingFields{policies.TargetIndex: target.Name}, true, func(r *v1alpha1.KubernetesApplicationResource) bool {
		return plan.RefersTo(r.Spec.LeavingTargetRef, target)
	})
}

// enqueueDependents enqueues the resources that depend on a Secret, ConfigMap or
// ServiceAccount of the hub.
func (e *Enqueuer) enqueueDependents(kind string, object any) {
	if source, ok := deleted(object).(metav1.Object); ok {
		e.enqueueListed(source.GetNamespace(), client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(kind, source.GetName())}, true, nil)
	}
}

// dependencyKinds are the kinds of objects that other objects may need.
var dependencyKinds = []string{references.SecretKind, references.ConfigMapKind, kinds.ServiceAccountKind, kinds.RoleKind, kinds.RoleBindingKind}

// enqueueContentDependents enqueues the resources that depend on a Secret or ConfigMap
// with a resource of its own, when that resource was applied or failed.
func (e *Enqueuer) enqueueContentDependents(was, is *v1alpha1.KubernetesApplicationResource) {
	if policies.ContentOwner(is) == nil {
		return
	}
	before, after := meta.FindStatusCondition(was.Status.Conditions, v1alpha1.Synced), meta.FindStatusCondition(is.Status.Conditions, v1alpha1.Synced)
	same := before != nil && after != nil && before.Status == after.Status && before.Message == after.Message &&
		was.Status.ContentRevision == is.Status.ContentRevision
	if after != nil && !same {
		e.enqueueDependentsOn(client.ObjectKeyFromObject(is))
	}
}

// enqueueDependentsOn enqueues the resources that depend on the Secret, ConfigMap or
// ServiceAccount of a resource.
func (e *Enqueuer) enqueueDependentsOn(key types.NamespacedName) {
	isDependency := func(kind string) bool { return strings.HasSuffix(key.Name, kinds.ResourceName(kind, "")) }
	if !slices.ContainsFunc(dependencyKinds, isDependency) {
		return
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	if err := e.Cache.Get(context.Background(), key, resource); err != nil {
		return // the resource is gone, and WatchSources gets the deletion of its native object
	}
	owner := policies.DependencyOwner(resource)
	if owner == nil {
		return
	}
	e.enqueueListed(key.Namespace, client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(owner.Kind, owner.Name)}, false,
		func(r *v1alpha1.KubernetesApplicationResource) bool { return r.Name != key.Name })
}

// enqueueAutoscalers enqueues the resources of the autoscalers that scale the object of a
// resource, when that object was applied or failed.
func (e *Enqueuer) enqueueAutoscalers(was, is *v1alpha1.KubernetesApplicationResource) {
	owner := metav1.GetControllerOfNoCopy(is)
	before, after := meta.FindStatusCondition(was.Status.Conditions, v1alpha1.Synced), meta.FindStatusCondition(is.Status.Conditions, v1alpha1.Synced)
	same := before != nil && after != nil && before.Status == after.Status && before.ObservedGeneration == after.ObservedGeneration
	if owner == nil || after == nil || same && was.Status.Target == is.Status.Target {
		return
	}
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	e.enqueueListed(is.Namespace, client.MatchingFields{policies.ScaleTargetIndex: policies.ScaleTargetKey(kind, owner.Name)}, false, nil)
}

// enqueueScaled enqueues the resource of the object that a deleted autoscaler scaled, because
// the hub sets the replicas now. That of a native object is found by its name, another in
// the application of the autoscaler.
func (e *Enqueuer) enqueueScaled(autoscaler *v1alpha1.KubernetesApplicationResource) {
	if len(policies.ScaleTargetKeys(autoscaler)) == 0 {
		return
	}
	scaled, _ := kinds.ScaleTargetOf(policies.TemplateObject(autoscaler.Spec.Template))
	isScaled := func(resource *v1alpha1.KubernetesApplicationResource) bool {
		object := policies.TemplateObject(resource.Spec.Template)
		found := object != nil && scaled.Is(object)
		if found {
			e.Memory.Writes.Update(resource.UID, func(w *memory.LastWrite) { w.AutoscalerDeletedAt = time.Now() })
		}
		return found
	}
	if autoscaler.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor {
		e.enqueueListed(autoscaler.Namespace, client.MatchingFields{policies.ApplicationIndex: autoscaler.Labels[v1alpha1.ApplicationLabel]}, false, isScaled)
		return
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: autoscaler.Namespace, Name: kinds.ResourceName(scaled.Kind, scaled.Name)}
	if err := e.Cache.Get(context.Background(), key, resource); err == nil && isScaled(resource) {
		e.Enqueue(resource, false)
	}
}

// enqueueMoving enqueues the resources that may leave their old target after a resource
// changed, and a resource that moves itself.
func (e *Enqueuer) enqueueMoving(was, is *v1alpha1.KubernetesApplicationResource) {
	e.enqueueReadyToLeave(is.Namespace, e.Memory.Progress.Set(is))
	moves := is.Spec.LeavingTargetRef != nil || was != nil && was.Spec.LeavingTargetRef != nil
	same := was != nil && was.Status.Target == is.Status.Target &&
		equality.Semantic.DeepEqual(was.Spec, is.Spec) && !reconciler.DeletionStarted(was, is)
	if moves && !same {
		e.Enqueue(is, false)
	}
}

// enqueueReadyToLeave enqueues resources for each of their targets.
func (e *Enqueuer) enqueueReadyToLeave(namespace string, ready map[string][]string) {
	for name, targets := range ready {
		for _, target := range targets {
			e.Queues.Enqueue(types.NamespacedName{Namespace: namespace, Name: target}, name, false)
		}
	}
}

// enqueueMembers enqueues the resources that may wait for the object of a changed
// resource. For a namespace or a definition these are the resources of the application,
// and for a shared dependency the resources that need it. was is nil for a deleted resource.
func (e *Enqueuer) enqueueMembers(was, is *v1alpha1.KubernetesApplicationResource) {
	if was != nil && equality.Semantic.DeepEqual(was.Status, is.Status) && equality.Semantic.DeepEqual(was.Spec, is.Spec) && !reconciler.DeletionStarted(was, is) {
		return
	}
	object := policies.TemplateObject(is.Spec.Template)
	if object == nil {
		return
	}
	switch object.GroupVersionKind().GroupKind() {
	case plan.NamespaceKind, plan.DefinitionKind:
	case plan.ServiceAccountKind, plan.RoleKind, plan.RoleBindingKind: // resources of other applications may need it as well
		e.enqueueDependents(object.GetKind(), &metav1.ObjectMeta{Namespace: is.Namespace, Name: object.GetName()})
		return
	default:
		return
	}
	e.announceDefinition(is, object)
	if application, member := is.Labels[v1alpha1.ApplicationLabel]; member {
		e.enqueueListed(is.Namespace, client.MatchingFields{policies.ApplicationIndex: application}, false,
			func(r *v1alpha1.KubernetesApplicationResource) bool { return r.UID != is.UID })
	}
}

// StopWaitingForKind ends the wait of a resource for a kind on a target.
func (e *Enqueuer) StopWaitingForKind(target, resource types.NamespacedName) {
	if connection, err := e.Clusters.Get(target); err == nil {
		connection.StopWaiting(resource)
	}
}

// announceDefinition enqueues the resources that wait for a kind, once its definition is
// ready on the target. It does not wait for an event of the target.
func (e *Enqueuer) announceDefinition(resource *v1alpha1.KubernetesApplicationResource, object *unstructured.Unstructured) {
	if object.GroupVersionKind().GroupKind() != plan.DefinitionKind || resource.Spec.TargetRef == nil ||
		!plan.ConditionTrueOn(resource, resource.Spec.TargetRef.Name, v1alpha1.Ready) {
		return
	}
	target := types.NamespacedName{Namespace: resource.Namespace, Name: resource.Spec.TargetRef.Name}
	if connection, err := e.Clusters.Get(target); err == nil {
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		connection.DefinitionChanged(group)
	}
}
