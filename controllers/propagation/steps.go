package propagation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// guard asks what the webhook asked, because a webhook can be down. What is
// being deleted need not be right: what was never sent can go, and the rest is
// looked for by name.
func (c *Controller) guard(ctx context.Context, j *journey) error {
	deleting := j.resource.DeletionTimestamp != nil
	if !j.moving() {
		c.tellWhere(j, "")
	}
	if errs := policies.ValidateResource(j.resource, nil); len(errs) > 0 && !deleting {
		j.fail(v1alpha1.ReasonInvalidTemplate, errs.ToAggregate().Error())
		return reconcile.TerminalError(errs.ToAggregate())
	}
	err := c.template(ctx, j)
	if err != nil && deleting {
		return c.letGo(ctx, j)
	}
	if err != nil {
		j.fail(v1alpha1.ReasonInvalidTemplate, err.Error())
		return reconcile.TerminalError(err)
	}
	return nil
}

// template reads what the object on the target should be.
func (c *Controller) template(_ context.Context, j *journey) (err error) {
	j.desired, err = desire(j.resource, c.options.HubID)
	return err
}

// fail says that what the resource asks for was not done.
func (j *journey) fail(reason, message string) {
	j.set(v1alpha1.Synced, metav1.ConditionFalse, reason, message)
	j.resource.Status.State = v1alpha1.StateFailed
}

// connect finds the target's connection, and the cache of the object's kind.
func (c *Controller) connect(ctx context.Context, j *journey) error {
	connection, err := c.clusters.Get(j.target)
	var problem *clusters.Problem
	switch {
	case errors.Is(err, clusters.ErrUnknown):
		return c.unknown(ctx, j)
	case errors.As(err, &problem):
		j.set(v1alpha1.TargetReachable, metav1.ConditionFalse, problem.Reason, fmt.Sprintf("target %s %s", j.target.Name, problem.Message))
		return c.waiting(j)
	case err != nil:
		return err
	}
	state := connection.State()
	if state.Reachable != metav1.ConditionUnknown { // what was known stands until more is
		meta.SetStatusCondition(&j.resource.Status.Conditions, state.Condition(j.target.Name, j.resource.Generation))
	}
	if !state.Up() {
		return c.waiting(j)
	}
	j.connection = connection
	reader, synced, err := c.informer(j)
	switch {
	case meta.IsNoMatchError(err) && j.resource.DeletionTimestamp != nil:
		return c.letGo(ctx, j) // its objects went with the kind
	case meta.IsNoMatchError(err):
		if wait := c.definitionFirst(ctx, j); wait != nil {
			return wait
		}
		return j.awaitKind(err)
	case clusters.Lost(err):
		connection.Suspect()
		return err
	case apierrors.IsForbidden(err):
		return c.refused(j, err)
	case err != nil:
		return err
	case !synced:
		return c.waiting(j)
	}
	j.cached = reader
	return nil
}

// unknown tells a target that is not published from one that this process has
// not come to yet.
func (c *Controller) unknown(ctx context.Context, j *journey) error {
	err := c.hub.Get(ctx, j.target, &v1alpha1.KubernetesTarget{})
	switch {
	case apierrors.IsNotFound(err):
		j.set(v1alpha1.TargetReachable, metav1.ConditionFalse, v1alpha1.ReasonTargetMissing,
			fmt.Sprintf("target %s is not published: there is no such KubernetesTarget", j.target.Name))
	case err != nil:
		return fmt.Errorf("reading target %s: %w", j.target.Name, err)
	}
	return c.waiting(j)
}

// waiting ends the journey until the target's next event, which brings every
// resource on it back. The last status seen is kept.
func (c *Controller) waiting(j *journey) error {
	if j.resource.DeletionTimestamp != nil {
		j.awaitTarget()
		return errWait
	}
	if j.resource.Status.State == "" {
		j.resource.Status.State = v1alpha1.StateScheduled
	}
	if meta.FindStatusCondition(j.resource.Status.Conditions, v1alpha1.Synced) == nil {
		j.set(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, "waiting for target "+j.target.Name)
	}
	if meta.FindStatusCondition(j.resource.Status.Conditions, v1alpha1.Ready) == nil {
		j.set(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, "waiting for target "+j.target.Name)
	}
	return errWait
}

// look finds the object on the target. The cache holds only objects with this
// hub's label, and lags behind; an object that is not in it is asked for.
func (c *Controller) look(ctx context.Context, j *journey) error {
	observed := &unstructured.Unstructured{}
	observed.SetGroupVersionKind(j.desired.GroupVersionKind())
	key := client.ObjectKeyFromObject(j.desired)
	if key.Namespace == "" {
		if namespaced, err := j.connection.Client().IsObjectNamespaced(observed); err != nil {
			return c.lost(j, fmt.Errorf("looking up %s: %w", j.desired.GetKind(), err))
		} else if namespaced {
			key.Namespace = metav1.NamespaceDefault
			j.desired.SetNamespace(key.Namespace)
		}
	}
	err := j.cached.Get(ctx, key, observed)
	if apierrors.IsNotFound(err) {
		call, cancel := j.connection.Context(ctx)
		defer cancel()
		err = j.connection.Client().Get(call, key, observed)
	}
	switch {
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		return c.refused(j, err)
	case err != nil:
		return c.lost(j, fmt.Errorf("reading %s on target %s: %w", j.desired.GetKind(), j.target.Name, err))
	default:
		j.observed = observed
	}
	j.standing = stand(j.desired, j.observed, j.resource, c.options.HubID)
	return nil
}

// apply makes the object what it should be, when it is not.
func (c *Controller) apply(ctx context.Context, j *journey) error {
	last := c.memory.recallOn(j.target, j.resource.UID)
	before := j.observed
	var differ []string
	var drift []v1alpha1.Drift
	if err := c.keepUntilGone(ctx, j); err != nil {
		return err
	}
	switch j.standing {
	case itself, foreign:
		j.fail(v1alpha1.ReasonOwnershipConflict, others(j.target.Name, j.desired, j.observed, j.standing, j.resource, c.options.HubID))
		j.disowned()
		j.nothingThere()
		return later(nowAndThen)
	case taken:
		if err := c.send(ctx, j); err != nil {
			return err
		}
	case drifted:
		if last.digest == digestOf(j.desired) && older(j.observed.GetResourceVersion(), last.resourceVersion) {
			return errWait // our own write is on its way to the cache
		}
		if digestOf(j.observed) == digestOf(j.desired) && j.drift == v1alpha1.DriftReport {
			var err error
			if drift, err = c.assess(ctx, j); err != nil {
				return err
			}
			break
		}
		if digestOf(j.observed) == digestOf(j.desired) {
			paths := differences(j.desired.Object, j.observed.Object)
			if values(j.observed, paths) == last.settled {
				break
			}
			if pause := last.patience(time.Now()); pause > 0 {
				return later(pause)
			}
			differ = paths
		}
		if since := time.Since(last.disputedAt); last.disputed != "" && last.disputed == standoff(j) && since < nowAndThen && !forced(j.resource) {
			if err := c.observe(ctx, j); err != nil {
				return err
			}
			return later(nowAndThen - since)
		}
		seen := j.observed.GetResourceVersion()
		if err := c.send(ctx, j); err != nil {
			return err
		}
		// What the target writes in another way, such as 0.5 for 500m, differs
		// too, and so does what is left to others: it was not changed back.
		still := differences(j.desired.Object, j.observed.Object)
		differ = slices.DeleteFunc(differ, func(path string) bool { return slices.Contains(still, path) })
		if len(differ) > 0 && j.observed.GetResourceVersion() != seen {
			c.memory.change(j.resource.UID, func(a *applied) { a.revert(time.Now()) })
			c.gauges.reverted.WithLabelValues(j.target.Namespace, j.target.Name).Inc()
			j.story = append(j.story, narrate.Event{Reason: v1alpha1.EventDriftReverted,
				Note: fmt.Sprintf("changed back on target %s: %s", j.target.Name, strings.Join(differ, ", "))})
		}
	case absent:
		if j.deletedThere() {
			return c.gone(j)
		}
		if err := c.send(ctx, j); err != nil {
			return err
		}
	}
	j.adopted(before, c.options.HubID)
	j.set(v1alpha1.Synced, metav1.ConditionTrue, v1alpha1.ReasonApplied,
		fmt.Sprintf("%s %s is applied on target %s", j.desired.GetKind(), j.desired.GetName(), j.target.Name)+c.left(j))
	j.resource.Status.State = v1alpha1.StateSubmitted
	c.tellDrift(j, drift)
	return nil
}

// keepUntilGone keeps a resource, once it is deleted, until its object is gone from
// the target. One that was written by hand, or restored from a backup, may not be kept
// yet.
func (c *Controller) keepUntilGone(ctx context.Context, j *journey) error {
	if j.standing == foreign || j.standing == itself || controllerutil.ContainsFinalizer(j.resource, v1alpha1.PropagationFinalizer) {
		return nil
	}
	if err := c.finalize(ctx, j.resource, controllerutil.AddFinalizer); err != nil {
		return err
	}
	j.before = withStatus(j.resource, j.before)
	return nil
}

// nothingThere says that nothing of the resource runs on the target; of one that
// moves there, what the target that it leaves said stands.
func (j *journey) nothingThere() {
	if j.moving() {
		return
	}
	j.resource.Status.Remote, j.resource.Status.ObservedHubGeneration = nil, 0
	j.set(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonFailed, "nothing of this resource runs on target "+j.target.Name)
}

// left ends the sentence that an object is applied with what of it is left to
// others.
func (c *Controller) left(j *journey) string {
	if j.standing != drifted {
		return ""
	}
	return c.memory.recallOn(j.target, j.resource.UID).yielded
}

// withStatus returns a copy of a resource as it is stored now, with the status
// that was stored before: the base of the status patch.
func withStatus(stored, before *v1alpha1.KubernetesApplicationResource) *v1alpha1.KubernetesApplicationResource {
	out := stored.DeepCopy()
	before.Status.DeepCopyInto(&out.Status)
	return out
}

// refused says what the target said.
func (c *Controller) refused(j *journey, err error) error {
	if clusters.Lost(err) {
		return c.lost(j, err)
	}
	j.fail(v1alpha1.ReasonRefused, refusal(j.target.Name, j.desired, err))
	// Not wrapped: a conflict there is no race lost here, to be run again at once.
	return fmt.Errorf("applying %s to target %s: %s", j.desired.GetKind(), j.target.Name, inItsWords(err))
}

// lost asks whether the target is away, and tries again.
func (c *Controller) lost(j *journey, err error) error {
	if clusters.Lost(err) {
		j.connection.Suspect()
	}
	return err
}

// finalize adds or removes the finalizer.
func (c *Controller) finalize(ctx context.Context, resource *v1alpha1.KubernetesApplicationResource, change func(client.Object, string) bool) error {
	before := resource.DeepCopy()
	status := resource.Status
	change(resource, v1alpha1.PropagationFinalizer)
	err := c.hub.Patch(ctx, resource, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.PropagationManager))
	resource.Status = status
	if err != nil {
		return fmt.Errorf("changing the finalizer of resource %s: %w", client.ObjectKeyFromObject(resource), err)
	}
	return nil
}

func older(observed, last string) bool {
	order, err := resourceversion.CompareResourceVersion(observed, last)
	return err == nil && order < 0
}

// values tells what the target made of an object, where it differs at some
// paths, from anything else it could be, without telling it: it is only ever
// compared.
func values(object *unstructured.Unstructured, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	content := maps.Clone(object.Object)
	delete(content, "metadata")
	delete(content, "status")
	data, err := json.Marshal([]any{paths, content, object.GetLabels(), object.GetAnnotations()})
	if err != nil {
		return "" // which equals nothing that was settled
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
