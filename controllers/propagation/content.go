package propagation

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// A Secret or ConfigMap that is labelled travels under its own name. What is in
// it is not in its resource's template; it is read on the hub when it is to be
// sent, and for nobody but the resource that the object itself controls.

// weigh finds out what state such an object is in.
func (c *Controller) weigh(ctx context.Context, j *journey) error {
	owner := policies.ContentOwner(j.resource)
	if owner == nil {
		return nil
	}
	of := origin{owner.Kind, j.resource.Namespace, owner.Name}
	known := metadataOf(corev1.SchemeGroupVersion.WithKind(of.kind))
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: of.namespace, Name: of.name}, known)
	if apierrors.IsNotFound(err) {
		return c.withhold(j, policies.Withholds(j.resource, nil))
	}
	if err != nil {
		return fmt.Errorf("looking for %s %s: %w", of.kind, of.name, err)
	}
	if why := policies.Withholds(j.resource, known); why != "" {
		return c.withhold(j, why)
	}
	l := &luggage{Dependency: v1alpha1.Dependency{Kind: of.kind, Name: of.name}}
	if last := c.sources.recall(of); last.uid == known.UID && last.resourceVersion == known.ResourceVersion {
		l.found, l.digest, l.kept = true, last.digest, last.kept
	} else if err := c.readFor(ctx, j, l); err != nil {
		return err
	}
	if err := c.keepKeys(ctx, of.namespace, l); err != nil {
		return err
	}
	if l.kept != "" {
		j.fail(v1alpha1.ReasonNeverSent, fmt.Sprintf("%s %s %s", l.Kind, l.Name, l.kept))
		return errWait
	}
	j.content = l
	return nil
}

// mark puts the sign of the content on what is desired: its digest, and how often
// it changed. The count is in the resource's status as well, for Pods that are
// replaced with it: who may read Pods and resources may know of the object that
// keys the digest, and would have something to guess at.
func (j *journey) mark() error {
	revision, digest := contentSign(j.observed)
	if revision = max(revision, j.resource.Status.ContentRevision); j.observed != nil && digest != j.content.digest {
		revision++
	}
	j.revision = max(revision, 1)
	annotations := j.desired.GetAnnotations()
	annotations[v1alpha1.ContentAnnotation] = strconv.FormatInt(j.revision, 10) + "." + j.content.digest
	j.desired.SetAnnotations(annotations)
	return sign(j.desired)
}

// contentSign reads what mark wrote.
func contentSign(object *unstructured.Unstructured) (revision int64, digest string) {
	if object == nil {
		return 0, ""
	}
	count, digest, _ := strings.Cut(object.GetAnnotations()[v1alpha1.ContentAnnotation], ".")
	revision, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return 0, ""
	}
	return revision, digest
}

// count tells in the status what was applied.
func (c *Controller) count(_ context.Context, j *journey) error {
	if j.content != nil {
		j.resource.Status.ContentRevision = j.revision
	}
	return nil
}

// readFor reads what a journey's resource stands for, and asks once more whether
// it may: of what was read, not of what the cache had.
func (c *Controller) readFor(ctx context.Context, j *journey, l *luggage) error {
	if err := c.read(ctx, origin{l.Kind, j.resource.Namespace, l.Name}, l); err != nil {
		return err
	}
	if why := policies.Withholds(j.resource, l.source); why != "" {
		l.content = nil
		return c.withhold(j, why)
	}
	return nil
}

// withhold ends a journey on which nothing may be sent. What is on the target
// stays as it is: mostly the object is on its way home, or being deleted.
func (c *Controller) withhold(j *journey, why string) error {
	j.set(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, why+", so nothing of it is sent")
	return errWait
}

// keepKeys keeps the Secrets on the hub that open targets.
func (c *Controller) keepKeys(ctx context.Context, namespace string, l *luggage) error {
	if l.Kind != kinds.SecretKind || !l.found || l.kept != "" {
		return nil
	}
	var targets v1alpha1.KubernetesTargetList
	if err := c.hub.List(ctx, &targets, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing targets: %w", err)
	}
	if l.kept = policies.KeepsConnection(l.Name, targets.Items); l.kept != "" {
		l.content = nil
	}
	return nil
}

// fill puts the content into what is desired, unless the target has it already.
func (c *Controller) fill(ctx context.Context, j *journey) error {
	if j.content == nil || j.standing == foreign || j.standing == itself {
		return nil
	}
	if j.observed != nil && older(j.observed.GetResourceVersion(), c.memory.recallOn(j.target, j.resource.UID).resourceVersion) {
		return errWait // our own write is on its way to the cache, and would be counted twice
	}
	if err := j.mark(); err != nil {
		return err
	}
	j.standing = stand(j.desired, j.observed, j.resource, c.options.HubID)
	uid := policies.ContentOwner(j.resource).UID
	if j.standing == inSync && fingerprint(uid, travelling(j.observed)) == j.content.digest {
		return nil
	}
	if j.content.content == nil {
		if err := c.readFor(ctx, j, j.content); err != nil {
			return err
		}
		if j.content.kept != "" {
			return errWait // the change is on its way to the cache
		}
		if err := j.mark(); err != nil {
			return err
		}
	}
	maps.Copy(j.desired.Object, j.content.content)
	j.standing = stand(j.desired, j.observed, j.resource, c.options.HubID)
	return nil
}

// revised finds out how often something changed, that travels by itself, if Pods
// are replaced with it. It is counted when it has arrived, so new Pods read what
// is new.
func (c *Controller) revised(ctx context.Context, j *journey, l *luggage) error {
	if !rolls(j.resource) {
		return nil
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: j.resource.Namespace, Name: kinds.ResourceName(l.Kind, l.Name)}
	if err := c.hub.Get(ctx, key, resource); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading resource %s: %w", key, err)
	}
	if revision := resource.Status.ContentRevision; revision > 0 {
		l.digest = strconv.FormatInt(revision, 10)
	}
	return nil
}

// await looks for something that the object needs, and that travels by itself.
func (c *Controller) await(ctx context.Context, j *journey, l *luggage, _ []*unstructured.Unstructured) (reason, problem string, err error) {
	gvk := corev1.SchemeGroupVersion.WithKind(l.Kind)
	key := types.NamespacedName{Namespace: j.resource.Namespace, Name: kinds.ResourceName(l.Kind, l.Name)}
	reader, synced, err := j.connection.Informer(gvk)
	if err != nil || !synced {
		return "", "", errWait // carry has just asked
	}
	theirs, err := reader.Of(ctx, gvk, key)
	if err != nil {
		return "", "", fmt.Errorf("listing what is of resource %s: %w", key, err)
	}
	observed, err := c.copyOn(ctx, j, l, theirs)
	if err != nil {
		return c.unplaced(j, l, err)
	}
	there := observed != nil && isMarkedAs(observed, key, c.options.HubID)
	if there && (!rolls(j.resource) || l.digest != "") {
		return "", "", nil
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	if err := c.hub.Get(ctx, key, resource); client.IgnoreNotFound(err) != nil {
		return "", "", fmt.Errorf("reading resource %s: %w", key, err)
	}
	synchronized := meta.FindStatusCondition(resource.Status.Conditions, v1alpha1.Synced)
	switch failed := synchronized != nil && synchronized.Status == metav1.ConditionFalse && synchronized.Reason != v1alpha1.ReasonApplying; {
	case failed:
		return v1alpha1.ReasonDependencyMissing, fmt.Sprintf("%s %s travels by itself, and did not arrive: %s", l.Kind, l.Name, synchronized.Message), errWait
	case there:
		return "", "", errWait // its count is on the way, and new Pods are made once
	}
	return v1alpha1.ReasonApplying, fmt.Sprintf("%s %s travels by itself, and is not on target %s yet", l.Kind, l.Name, j.target.Name), errWait
}

// tellAwaiting makes those look again who wait for something that travels by
// itself, when its resource got further.
func (c *Controller) tellAwaiting(before, after any) {
	was, ok := before.(*v1alpha1.KubernetesApplicationResource)
	is, ok2 := after.(*v1alpha1.KubernetesApplicationResource)
	if !ok || !ok2 || policies.ContentOwner(is) == nil {
		return
	}
	then, now := meta.FindStatusCondition(was.Status.Conditions, v1alpha1.Synced), meta.FindStatusCondition(is.Status.Conditions, v1alpha1.Synced)
	if now == nil || then != nil && then.Status == now.Status && then.Message == now.Message && was.Status.ContentRevision == is.Status.ContentRevision {
		return
	}
	c.tellWhoAwaits(client.ObjectKeyFromObject(is))
}

// tellWhoAwaits makes those look again who need what a resource stands for.
func (c *Controller) tellWhoAwaits(key types.NamespacedName) {
	if !strings.HasSuffix(key.Name, kinds.ResourceName(kinds.SecretKind, "")) && !strings.HasSuffix(key.Name, kinds.ResourceName(kinds.ConfigMapKind, "")) {
		return
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	if err := c.cache.Get(context.Background(), key, resource); err != nil {
		return // it is gone, and its native object's deletion tells
	}
	owner := policies.ContentOwner(resource)
	if owner == nil {
		return
	}
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.cache.List(context.Background(), &list, client.InNamespace(key.Namespace), client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(owner.Kind, owner.Name)})
	if err != nil {
		return // the cache has stopped
	}
	for i := range list.Items {
		if list.Items[i].Name != key.Name {
			c.enqueue(&list.Items[i], false)
		}
	}
}
