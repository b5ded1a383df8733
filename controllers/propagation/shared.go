package propagation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// A shared dependency is one object on a target, for all resources there that need it.
// It has a resource of its own for each target. Two resources may send the same object:
// two targets may be one cluster, and a Secret or ConfigMap may have a resource for its
// label as well. One of them owns the object, and the other one shares it. When the owner
// leaves the target, the object stays, and the other one takes it over. So the tokens of a
// ServiceAccount stay valid when an application moves between such targets.

// waitForServiceAccount waits until a ServiceAccount exists on the target. Pods use the
// one of that name whoever owns it, so that of somebody else is enough.
func (c *copies) waitForServiceAccount(ctx context.Context, s *scope.Scope, d *plan.Dependency) (reason, problem string, err error) {
	observed, err := c.findShared(ctx, s, d)
	switch {
	case apierrors.IsForbidden(err):
		return "", "", nil // the target decides whether it starts the Pods
	case err != nil:
		return s.CopyError(d, err)
	case observed != nil:
		if !plan.IsAppliedFor(observed, s.Resource.Namespace, c.options.HubID) {
			d.ForeignOwner = plan.OwnerName(observed, c.options.HubID)
		}
		return "", "", nil
	case !d.Found:
		reason, problem := plan.ProblemOf(*d, s.Resource.Namespace)
		return reason, problem, reconciler.RequeueAfter(scope.PollInterval) // nobody tells when it exists on the target
	}
	return c.problemOfResource(ctx, s, d, c.senderKey(s, d.Dependency))
}

// waitForSender waits until a dependency is applied by the resource that sends it. It makes no
// request to the target: the cache has the objects of this hub, and the status of that
// resource is enough until the cache has a new object.
func (c *copies) waitForSender(ctx context.Context, s *scope.Scope, d *plan.Dependency) (reason, problem string, err error) {
	observed, err := c.findInCache(ctx, s, d)
	if err != nil {
		return s.CopyError(d, err)
	}
	key := c.senderKey(s, d.Dependency)
	exists := observed != nil && plan.IsSent(observed, s.Resource.Namespace, c.options.HubID)
	if observed == nil {
		sender := &v1alpha1.KubernetesApplicationResource{}
		if _, err := reconciler.Find(ctx, c.hub, key, sender); err != nil {
			return "", "", err
		}
		exists = sender.Status.RemoteUID != "" && plan.ConditionTrueOn(sender, s.Target.Name, v1alpha1.Synced)
	}
	if exists && (!plan.RollsPods(s.Resource, s.Desired) || !scope.HasContent(d.Dependency) || d.Digest != "") {
		return "", "", nil
	}
	reason, problem, err = c.problemOfResource(ctx, s, d, key)
	if exists && reason == v1alpha1.ReasonApplying {
		return "", "", reconciler.ErrDone // its revision is about to be written; Pods are replaced once
	}
	return reason, problem, err
}

// senderKey returns the key of the resource that sends a dependency to the target.
func (c *base) senderKey(s *scope.Scope, d v1alpha1.Dependency) types.NamespacedName {
	if d.Native {
		return types.NamespacedName{Namespace: s.Resource.Namespace, Name: kinds.ResourceName(d.Kind, d.Name)}
	}
	return types.NamespacedName{Namespace: s.Resource.Namespace, Name: kinds.DependencyName(d.Kind, d.Name, s.Target.Name)}
}

// findShared returns the shared dependency on the target, or nil. The cache of the target
// has the objects of this hub, and the target has those of others.
func (c *copies) findShared(ctx context.Context, s *scope.Scope, d *plan.Dependency) (*unstructured.Unstructured, error) {
	if observed, err := c.findInCache(ctx, s, d); observed != nil || err != nil {
		return observed, err
	}
	return c.find(ctx, s, d, nil)
}

// findInCache returns the shared dependency in the cache of the target, or nil. There is no
// cache of a kind that the target's account may not list.
func (c *copies) findInCache(ctx context.Context, s *scope.Scope, d *plan.Dependency) (*unstructured.Unstructured, error) {
	gvk := kinds.DependencyKind(d.Kind)
	reader, synced, err := s.Connection.Informer(gvk)
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil //nolint:nilnil // nil stands for an object that is not in the cache
	case err != nil:
		return nil, err
	case !synced:
		return nil, s.WaitForTarget()
	}
	observed := &unstructured.Unstructured{}
	observed.SetGroupVersionKind(gvk)
	err = reader.Get(ctx, client.ObjectKey{Namespace: s.Desired.GetNamespace(), Name: d.Name}, observed)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil stands for an object that is not in the cache
	}
	return observed, err
}

// shareObject decides about an object that another resource of the same native object
// owns, because the targets of both are one cluster. The object of an owner that is gone
// is taken over.
func (c *applier) shareObject(ctx context.Context, s *scope.Scope) error {
	if s.State != plan.Foreign {
		return nil
	}
	sibling := plan.SiblingOf(s.Observed, s.Resource, c.options.HubID)
	if sibling == "" {
		return nil
	}
	owner := &v1alpha1.KubernetesApplicationResource{}
	found, err := reconciler.Find(ctx, c.live, client.ObjectKey{Namespace: s.Resource.Namespace, Name: sibling}, owner)
	if err != nil {
		return err
	}
	if !found {
		s.TakesOver, s.State = true, plan.Drifted
		return nil
	}
	if controller := metav1.GetControllerOf(owner); controller == nil || controller.UID != metav1.GetControllerOf(s.Resource).UID {
		return nil
	}
	s.State = plan.Shared
	s.Resource.Status.RemoteUID = s.Observed.GetUID()
	s.Resource.Status.ContentRevision, _ = plan.ContentRevisionOf(s.Observed)
	s.Resource.Status.State = v1alpha1.StateSubmitted
	s.SetCondition(v1alpha1.Synced, metav1.ConditionTrue, v1alpha1.ReasonApplied, fmt.Sprintf(
		"%s %s is on target %s, where resource %s applies it", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name, sibling))
	if err := c.observer.mirrorStatus(ctx, s); err != nil {
		return err
	}
	return reconciler.RequeueAfter(scope.PollInterval)
}

// leaveToSibling tells whether another resource of the same native object shares the
// object, or is about to share it. Then the object stays on the target.
func (c *remover) leaveToSibling(ctx context.Context, s *scope.Scope) (bool, error) {
	owner := policies.DependencyOwner(s.Resource)
	if owner == nil || s.Observed == nil {
		return false, nil
	}
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.hub.List(ctx, &list, client.InNamespace(s.Resource.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{policies.DependencyIndex: policies.DependencyKey(owner.Kind, owner.Name)})
	if err != nil {
		return false, fmt.Errorf("listing the resources of %s %s: %w", owner.Kind, owner.Name, err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		isSibling := other.Name != s.Resource.Name && other.DeletionTimestamp == nil && metav1.IsControlledBy(other, &metav1.ObjectMeta{UID: owner.UID})
		if isSibling && (other.Status.RemoteUID == s.Observed.GetUID() || plan.RefersTo(other.Spec.TargetRef, s.Target)) {
			return true, nil
		}
	}
	return false, nil
}

// orphanShared sets the deletion policy Orphan for the shared dependencies of an object
// that remains on the target without Portico: it still needs them.
func (c *remover) orphanShared(ctx context.Context, s *scope.Scope) error {
	return c.annotateShared(ctx, s, v1alpha1.DeletionAnnotation, string(v1alpha1.DeletionOrphan))
}

// leaveShared leaves the shared dependencies of an object that remains on the target with
// Portico's marks, for the next resource of the same name.
func (c *remover) leaveShared(ctx context.Context, s *scope.Scope) error {
	return c.annotateShared(ctx, s, v1alpha1.LeftAnnotation, "true")
}

// annotateShared sets an annotation of the resources that send the shared dependencies of
// an object.
func (c *remover) annotateShared(ctx context.Context, s *scope.Scope, key, value string) error {
	for _, d := range plan.DependenciesOf(s.Resource) {
		if !d.Shared {
			continue
		}
		resource := &v1alpha1.KubernetesApplicationResource{}
		found, err := reconciler.Find(ctx, c.hub, c.senderKey(s, d), resource)
		if err != nil {
			return err
		}
		if !found || !policies.IsSharedDependency(resource) {
			continue
		}
		before := resource.DeepCopy()
		metav1.SetMetaDataAnnotation(&resource.ObjectMeta, key, value)
		if _, err := c.writer.Patch(ctx, before, resource, "leaving on its target the object of"); err != nil {
			return err
		}
	}
	return nil
}

// isLeft tells whether the object of a resource that is being deleted remains on the
// target with Portico's marks.
func isLeft(resource *v1alpha1.KubernetesApplicationResource) bool {
	return resource.DeletionTimestamp != nil && policies.IsSharedDependency(resource) && resource.Annotations[v1alpha1.LeftAnnotation] == "true"
}

// leaveObject removes the finalizer of a resource whose object remains on the target. It
// sends no request to the target, which may be unreachable.
func (c *remover) leaveObject(ctx context.Context, s *scope.Scope) error {
	s.SkipStatus = true
	if err := c.writer.RemoveFinalizer(ctx, s.Resource, v1alpha1.PropagationFinalizer); err != nil {
		return err
	}
	return reconciler.ErrDone
}
