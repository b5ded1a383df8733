package propagation

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// A resource moves in three steps, each of which may be repeated:
//
//  1. It gets another target, and notes which it leaves. The new target's lane
//     applies it there. What is shown is still what the old target said.
//  2. It is ready on the new target, and what is shown is from there.
//  3. Once that is so of every resource of its application, the old target's lane
//     deletes it on the old target. A Service does not go before its Deployment
//     runs elsewhere, and an old target that hangs holds up the third step alone.

// moving tells a resource that was not yet seen ready on the target it moves to.
func (j *journey) moving() bool {
	return j.resource.Spec.LeavingTargetRef != nil && j.resource.Status.Target != j.target.Name
}

// tellWhere sets the condition Scheduled, unless the scheduler uses it to say why
// the resource stays where it is.
func (c *Controller) tellWhere(j *journey, unready string) {
	if _, asked := j.resource.Annotations[v1alpha1.MoveFromAnnotation]; asked {
		return
	}
	message := c.where(j)
	if unready != "" {
		message += "; not ready there yet: " + unready
	}
	j.set(v1alpha1.Scheduled, metav1.ConditionTrue, v1alpha1.ReasonScheduled, message)
}

// where says, for a person, on which target a resource is.
func (c *Controller) where(j *journey) string {
	what := "resource"
	if application, ok := j.resource.Labels[v1alpha1.ApplicationLabel]; ok {
		what = "application " + application
	}
	leaving := j.resource.Spec.LeavingTargetRef
	switch {
	case leaving == nil:
		return fmt.Sprintf("%s runs on target %s", what, j.target.Name)
	case j.moving():
		return fmt.Sprintf("%s moves from target %s to target %s", what, leaving.Name, j.target.Name)
	}
	old, err := c.clusters.Get(types.NamespacedName{Namespace: j.resource.Namespace, Name: leaving.Name})
	if err != nil || !old.State().Up() {
		return fmt.Sprintf("%s runs on target %s; what is left on target %s is deleted when that can be reached", what, j.target.Name, leaving.Name)
	}
	return fmt.Sprintf("%s runs on target %s, and leaves target %s when all of it is ready", what, j.target.Name, leaving.Name)
}

// unready says why the object on the new target is not ready. It asks the target
// and not the cache: who turns back on the way may have deleted the object a
// moment ago.
func (c *Controller) unready(ctx context.Context, j *journey) (string, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(j.desired.GroupVersionKind())
	err := c.call(ctx, j, func(ctx context.Context) error {
		return j.connection.Client().Get(ctx, client.ObjectKeyFromObject(j.desired), live)
	})
	if err != nil {
		return "", c.lost(j, fmt.Errorf("reading %s on target %s: %w", j.desired.GetKind(), j.target.Name, err))
	}
	if ready := policies.ReadinessOf(live, j.resource.Spec.Readiness); !ready.Works() {
		return ready.Message, nil
	}
	j.observed = live
	return "", nil
}

// errNotArrived ends a journey until more of the application is ready elsewhere.
var errNotArrived = errors.New("not all of the application is ready on its new target")

// arrived ends a journey on the old target while anything of the application is
// not ready on the new one. What is deleted, or was left to itself, need not wait.
func (c *Controller) arrived(ctx context.Context, j *journey) error {
	if j.resource.DeletionTimestamp != nil || orphaned(j.resource) {
		return nil
	}
	// Not from the cache, which may not know yet that it turns back.
	err := c.live.Get(ctx, client.ObjectKeyFromObject(j.resource), j.resource)
	if apierrors.IsNotFound(err) {
		return errWait
	}
	if err != nil {
		return fmt.Errorf("reading resource %s: %w", client.ObjectKeyFromObject(j.resource), err)
	}
	if !names(j.resource.Spec.LeavingTargetRef, j.target) || j.resource.Spec.TargetRef == nil {
		return errWait // the change is on its way to the cache
	}
	target := &v1alpha1.KubernetesTarget{}
	if err := c.hub.Get(ctx, j.target, target); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading target %s: %w", j.target, err)
	}
	if target.DeletionTimestamp != nil && policies.Released(target) {
		return errWait // what is there stays behind, and the resource is about to be let go
	}
	members := []v1alpha1.KubernetesApplicationResource{*j.resource}
	if name, ok := j.resource.Labels[v1alpha1.ApplicationLabel]; ok {
		list, err := c.companions(ctx, j.resource.Namespace, name)
		if err != nil {
			return err
		}
		members = append(members, list...)
	}
	for _, m := range members {
		if m.DeletionTimestamp != nil {
			continue
		}
		there := m.Spec.TargetRef != nil && m.Spec.TargetRef.Name == j.resource.Spec.TargetRef.Name
		ready := m.Spec.LeavingTargetRef == nil || m.Status.Target == j.resource.Spec.TargetRef.Name
		if !there || !ready {
			return errNotArrived
		}
	}
	return nil
}

func (c *Controller) companions(ctx context.Context, namespace, application string) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.cache.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.ApplicationLabel: application}); err != nil {
		return nil, fmt.Errorf("listing the resources of application %s: %w", application, err)
	}
	return list.Items, nil
}

// tellCompanions makes those that leave a target look again when another resource
// of their application got further.
func (c *Controller) tellCompanions(before, after any) {
	is, ok := after.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return
	}
	was, known := before.(*v1alpha1.KubernetesApplicationResource)
	moves := is.Spec.LeavingTargetRef != nil || known && was.Spec.LeavingTargetRef != nil
	same := known && was.Status.Target == is.Status.Target &&
		equality.Semantic.DeepEqual(was.Spec, is.Spec) && (was.DeletionTimestamp == nil) == (is.DeletionTimestamp == nil)
	if !moves || same {
		return
	}
	application, member := is.Labels[v1alpha1.ApplicationLabel]
	if !member {
		c.enqueue(is, false)
		return
	}
	list, err := c.companions(context.Background(), is.Namespace, application)
	if err != nil {
		return // the cache has stopped
	}
	for i := range list {
		if list[i].Spec.LeavingTargetRef != nil {
			c.enqueue(&list[i], false)
		}
	}
}

// shared tells whether the object is the one on the new target as well: both lead
// to one cluster, which was published twice.
func (c *Controller) shared(ctx context.Context, j *journey) (bool, error) {
	if !j.standing.ours() || j.resource.Spec.TargetRef == nil || j.resource.DeletionTimestamp != nil || orphaned(j.resource) {
		return false, nil
	}
	to := j.resource.Spec.TargetRef.Name
	connection, err := c.clusters.Get(types.NamespacedName{Namespace: j.resource.Namespace, Name: to})
	if err != nil || connection.Client() == nil {
		return false, errNotArrived // it is away again
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(j.desired.GroupVersionKind())
	call, cancel := connection.Context(ctx)
	defer cancel()
	err = connection.Client().Get(call, client.ObjectKeyFromObject(j.desired), there)
	if client.IgnoreNotFound(err) != nil {
		if clusters.Lost(err) {
			connection.Suspect()
		}
		return false, fmt.Errorf("reading %s on target %s: %w", j.desired.GetKind(), to, err)
	}
	return err == nil && there.UID == j.observed.GetUID(), nil
}

// leave takes the object off the target that its resource leaves.
func (c *Controller) leave(ctx context.Context, j *journey) error {
	shared, err := c.shared(ctx, j)
	if err != nil {
		return err
	}
	switch {
	case !j.standing.ours() || shared:
	case orphaned(j.resource):
		if err := c.unmarkObject(ctx, j, j.desired); err != nil {
			return err
		}
	default:
		if gone, err := c.remove(ctx, j); err != nil {
			return err
		} else if !gone {
			return errWait
		}
	}
	finish := c.discard
	if orphaned(j.resource) {
		finish = c.unmarkObject
	}
	if !shared { // what is next to an object that stays, stays with it
		if err := c.retract(ctx, j, finish); err != nil {
			return err
		}
	}
	before := j.resource.DeepCopy()
	j.resource.Spec.LeavingTargetRef = nil
	if j.resource.DeletionTimestamp != nil && j.resource.Spec.TargetRef == nil {
		controllerutil.RemoveFinalizer(j.resource, v1alpha1.PropagationFinalizer)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Patch(ctx, j.resource, patch, client.FieldOwner(v1alpha1.PropagationManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("ending the move of resource %s: %w", client.ObjectKeyFromObject(j.resource), err))
	}
	if j.resource.Spec.TargetRef != nil && j.resource.DeletionTimestamp == nil && !orphaned(j.resource) {
		j.story = append(j.story, narrate.Event{Reason: v1alpha1.EventLeft,
			Note: fmt.Sprintf("%s %s left target %s, and runs on target %s", j.desired.GetKind(), j.desired.GetName(), j.target.Name, j.resource.Spec.TargetRef.Name)})
	}
	return nil
}
