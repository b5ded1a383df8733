package propagation

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets/status,verbs=patch

// reach connects to a target that something is to be deleted on. Who gave that up
// need not wait for a target that is away; one that answers is not left so.
func (c *Controller) reach(ctx context.Context, j *journey) error {
	err := c.connect(ctx, j)
	if !errors.Is(err, errWait) || j.resource.DeletionTimestamp == nil || !policies.Released(j.resource) ||
		!controllerutil.ContainsFinalizer(j.resource, v1alpha1.PropagationFinalizer) {
		return err
	}
	away, failed := c.away(ctx, j.target)
	if failed != nil {
		return failed
	}
	if !away {
		return err
	}
	return c.giveUp(ctx, j)
}

// away tells whether a target is known not to answer, or does not exist any more. It
// is not away before it was asked for the first time.
func (c *Controller) away(ctx context.Context, target types.NamespacedName) (bool, error) {
	connection, err := c.clusters.Get(target)
	var problem *clusters.Problem
	switch {
	case errors.As(err, &problem):
		return true, nil
	case errors.Is(err, clusters.ErrUnknown):
		err = c.hub.Get(ctx, target, &v1alpha1.KubernetesTarget{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	case err != nil:
		return false, err
	}
	return connection.State().Reachable == metav1.ConditionFalse, nil
}

// giveUp takes a deleted resource off a target that is away, and records what stays
// there. Its marks stay too: by them a resource of the same name finds it again.
func (c *Controller) giveUp(ctx context.Context, j *journey) error {
	what := policies.Remote(j.resource)
	target, err := c.recordLeft(ctx, j, what)
	if err != nil {
		return err
	}
	before := j.resource.DeepCopy()
	if names(j.resource.Spec.TargetRef, j.target) {
		j.resource.Spec.TargetRef = nil
	}
	if names(j.resource.Spec.LeavingTargetRef, j.target) {
		j.resource.Spec.LeavingTargetRef = nil
	}
	if len(policies.TargetsOf(j.resource)) == 0 {
		controllerutil.RemoveFinalizer(j.resource, v1alpha1.PropagationFinalizer)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Patch(ctx, j.resource, patch, client.FieldOwner(v1alpha1.PropagationManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("giving up resource %s: %w", client.ObjectKeyFromObject(j.resource), err))
	}
	j.done = true
	if j.burdened() {
		what += ", with the Secrets and ConfigMaps it took along,"
	}
	ctrl.LoggerFrom(ctx).Info("Gave up what is on a target that is away", "target", j.target, "resource", j.resource.Name, "object", what)
	told := narrate.Event{Warning: true, Reason: v1alpha1.EventGivenUp,
		Note: fmt.Sprintf("%s stays behind on target %s, which is away, and Portico no longer looks after it", what, j.target.Name)}
	j.story = append(j.story, told)
	if target != nil {
		narrate.Tell(c.recorder, target, "Release", told)
	}
	return errWait
}

// awaitTarget says that a deletion waits for the target. One that is away may never
// come back; the way out is told with it.
func (j *journey) awaitTarget() {
	what := "to delete"
	if orphaned(j.resource) {
		what = "to take Portico's marks off"
	}
	message := fmt.Sprintf("waiting for target %s, %s %s there", j.target.Name, what, policies.Remote(j.resource))
	if !meta.IsStatusConditionFalse(j.resource.Status.Conditions, v1alpha1.TargetReachable) { // it is about to be asked
		j.resource.Status.State = v1alpha1.StateDeleting
		j.set(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonWithdrawing, message)
		return
	}
	j.await(fmt.Sprintf("%s; if it never comes back, leave that behind: kubectl annotate kubernetesapplicationresource %s %s=true",
		message, j.resource.Name, v1alpha1.ReleaseAnnotation))
}

// mostLeft bounds what a target's status lists.
const mostLeft = 50

// recordLeft lists an object in the status of the target that it stays on; there is
// no such list when the target is not published any more.
func (c *Controller) recordLeft(ctx context.Context, j *journey, what string) (*v1alpha1.KubernetesTarget, error) {
	target := &v1alpha1.KubernetesTarget{}
	if err := c.live.Get(ctx, j.target, target); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // there is none, and nothing went wrong
		}
		return nil, fmt.Errorf("reading target %s: %w", j.target, err)
	}
	before := target.DeepCopy()
	target.Status.LeftBehind = withLeft(target.Status.LeftBehind, v1alpha1.LeftObject{Object: what, Resource: j.resource.Name, Time: metav1.Now()})
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.hub.Status().Patch(ctx, target, patch, client.FieldOwner(v1alpha1.PropagationManager)); err != nil {
		return nil, fmt.Errorf("recording on target %s what stays there: %w", j.target, err)
	}
	return target, nil
}

// withLeft adds to a list, which holds every object once.
func withLeft(list []v1alpha1.LeftObject, left v1alpha1.LeftObject) []v1alpha1.LeftObject {
	var out []v1alpha1.LeftObject
	for _, other := range list {
		if other.Object != left.Object {
			out = append(out, other)
		}
	}
	out = append(out, left)
	return out[max(0, len(out)-mostLeft):]
}
