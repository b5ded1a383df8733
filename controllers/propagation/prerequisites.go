package propagation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// All resources of an application are sent at once. Three kinds of objects wait for
// another object: an object waits for its namespace, a custom resource for the definition
// of its kind, and an autoscaler for the object that it scales. A change of the awaited resource enqueues
// the waiting ones, so that there are no useless requests to the target.

// prerequisiteResource returns the resource of the same application that creates a
// prerequisite of the object, or nil. It may have no target yet: it gets the same one.
func (c *connector) prerequisiteResource(ctx context.Context, s *scope, prerequisite string) (*v1alpha1.KubernetesApplicationResource, error) {
	application, member := s.resource.Labels[v1alpha1.ApplicationLabel]
	if !member {
		return nil, nil
	}
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.cache.List(ctx, &list, client.InNamespace(s.resource.Namespace), client.MatchingFields{policies.PrerequisiteIndex: prerequisite}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the resources that create %s: %w", prerequisite, err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Labels[v1alpha1.ApplicationLabel] == application && m.DeletionTimestamp == nil && m.UID != s.resource.UID {
			return m, nil
		}
	}
	return nil, nil
}

// waitForDefinition ends the reconcile of a custom resource whose kind the target does
// not have yet, if its application has the definition.
func (c *connector) waitForDefinition(ctx context.Context, s *scope) error {
	kind := s.desired.GroupVersionKind().GroupKind()
	first, err := c.prerequisiteResource(ctx, s, policies.DefinitionKey(kind.Group, kind.Kind))
	if err != nil || first == nil || plan.ConditionTrueOn(first, s.target.Name, v1alpha1.Ready) {
		return err
	}
	return s.waitForResource(first, fmt.Sprintf("target %s does not know kind %s of %s yet", s.target.Name, kind.Kind, kind.Group))
}

// waitForNamespace ends the reconcile of an object whose namespace does not exist on the
// target, if its application has the namespace.
func (c *connector) waitForNamespace(ctx context.Context, s *scope) error {
	first, err := c.prerequisiteResource(ctx, s, policies.NamespaceKey(s.desired.GetNamespace()))
	if err != nil || first == nil {
		return err
	}
	if plan.ConditionTrueOn(first, s.target.Name, v1alpha1.Synced) {
		return reconciler.RequeueAfter(cacheLag) // it was created a moment ago
	}
	return s.waitForResource(first, fmt.Sprintf("namespace %s does not exist on target %s yet", s.desired.GetNamespace(), s.target.Name))
}

// waitForScaleTarget ends the reconcile of an autoscaler until the object that it scales
// was applied on the target for the same namespace. Without that a user could scale an
// object of another owner there. An applied autoscaler does not wait again.
func (c *connector) waitForScaleTarget(ctx context.Context, s *scope) error {
	scaled, isAutoscaler := kinds.ScaleTargetOf(s.desired)
	if !isAutoscaler || s.resource.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor || s.state == plan.Foreign || s.state == plan.NativeObject {
		return nil
	}
	if s.observed != nil {
		if applied, _ := kinds.ScaleTargetOf(s.observed); applied == scaled {
			return nil
		}
	}
	first, err := c.scaledResource(ctx, s.resource.Namespace, scaled)
	if err != nil {
		return err
	}
	if first == nil {
		s.setFailed(v1alpha1.ReasonDependencyMissing, fmt.Sprintf(
			"%s %s is not sent to target %s, so its autoscaler is not sent; label it %s=%s, or send both by a KubernetesApplication",
			scaled.Kind, scaled.Name, s.target.Name, v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote))
		s.clearRemoteStatus()
		return reconciler.ErrDone
	}
	if meta.IsStatusConditionTrue(first.Status.Conditions, v1alpha1.Synced) && plan.RefersTo(first.Spec.TargetRef, s.target) &&
		(s.isMoving() || first.Status.Target == s.target.Name) {
		return nil
	}
	return s.waitForResource(first, fmt.Sprintf("%s %s is not on target %s yet", scaled.Kind, scaled.Name, s.target.Name))
}

// scaledResource returns the resource of the object that an autoscaler scales, or nil if
// that object is not sent by a label.
func (c *connector) scaledResource(ctx context.Context, namespace string, scaled kinds.ScaleTarget) (*v1alpha1.KubernetesApplicationResource, error) {
	kind, scalable := scaled.Scalable()
	if !scalable {
		return nil, nil
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: namespace, Name: kinds.ResourceName(kind.GroupVersionKind().Kind, scaled.Name)}
	if err := c.hub.Get(ctx, key, resource); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading resource %s: %w", key, err)
	}
	owner := metav1.GetControllerOf(resource)
	if owner == nil || owner.Kind != scaled.Kind || owner.Name != scaled.Name || resource.DeletionTimestamp != nil {
		return nil, nil
	}
	return resource, nil
}

// waitForKind ends the reconcile of an object whose kind the target does not have, until
// the target gets a definition of the kind.
func (s *scope) waitForKind(missing error) error {
	gvk := s.desired.GroupVersionKind()
	s.connection.WaitForKind(gvk, client.ObjectKeyFromObject(s.resource), missing)
	s.setFailed(v1alpha1.ReasonUnknownKind, plan.UnknownKindMessage(s.target.Name, gvk)+"; it is sent when the target has a definition of the kind")
	return reconciler.ErrDone
}

// waitForResource ends the reconcile until another resource changed. If that resource
// failed, this one has failed as well.
func (s *scope) waitForResource(first *v1alpha1.KubernetesApplicationResource, problem string) error {
	message := fmt.Sprintf("%s; it waits for resource %s of the same application", problem, first.Name)
	if first.Status.State == v1alpha1.StateFailed {
		s.setFailed(v1alpha1.ReasonApplying, message+", which failed")
	} else {
		s.setCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, message)
		s.resource.Status.State = v1alpha1.StateScheduled
	}
	s.setCondition(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonProgressing, message)
	return reconciler.ErrDone
}
