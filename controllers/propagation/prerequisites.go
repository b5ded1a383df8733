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
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// All resources of an application are sent at once. Three kinds of objects wait for
// another object: an object waits for its namespace, a custom resource for the definition
// of its kind, and an autoscaler for the object that it scales. A change of the awaited resource enqueues
// the waiting ones, so that there are no useless requests to the target.

// prerequisiteResource returns the resource of the same application that creates a
// prerequisite of the object, or nil. It may have no target yet: it gets the same one.
func (c *connector) prerequisiteResource(ctx context.Context, s *scope.Scope, prerequisite string) (*v1alpha1.KubernetesApplicationResource, error) {
	application, member := s.Resource.Labels[v1alpha1.ApplicationLabel]
	if !member {
		return nil, nil
	}
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.cache.List(ctx, &list, client.InNamespace(s.Resource.Namespace), client.MatchingFields{policies.PrerequisiteIndex: prerequisite}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the resources that create %s: %w", prerequisite, err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Labels[v1alpha1.ApplicationLabel] == application && m.DeletionTimestamp == nil && m.UID != s.Resource.UID {
			return m, nil
		}
	}
	return nil, nil
}

// waitForDefinition ends the reconcile of a custom resource whose kind the target does
// not have yet, if its application has the definition.
func (c *connector) waitForDefinition(ctx context.Context, s *scope.Scope) error {
	kind := s.Desired.GroupVersionKind().GroupKind()
	first, err := c.prerequisiteResource(ctx, s, policies.DefinitionKey(kind.Group, kind.Kind))
	if err != nil || first == nil || plan.ConditionTrueOn(first, s.Target.Name, v1alpha1.Ready) {
		return err
	}
	return s.WaitForResource(first, fmt.Sprintf("target %s does not know kind %s of %s yet", s.Target.Name, kind.Kind, kind.Group))
}

// waitForNamespace ends the reconcile of an object whose namespace does not exist on the
// target, if its application has the namespace.
func (c *connector) waitForNamespace(ctx context.Context, s *scope.Scope) error {
	first, err := c.prerequisiteResource(ctx, s, policies.NamespaceKey(s.Desired.GetNamespace()))
	if err != nil || first == nil {
		return err
	}
	if plan.ConditionTrueOn(first, s.Target.Name, v1alpha1.Synced) {
		return reconciler.RequeueAfter(reconciler.CacheLag) // it was created a moment ago
	}
	return s.WaitForResource(first, fmt.Sprintf("namespace %s does not exist on target %s yet", s.Desired.GetNamespace(), s.Target.Name))
}

// waitForScaleTarget ends the reconcile of an autoscaler until the object that it scales
// was applied on the target for the same namespace. Without that a user could scale an
// object of another owner there. An applied autoscaler does not wait again.
func (c *connector) waitForScaleTarget(ctx context.Context, s *scope.Scope) error {
	scaled, isAutoscaler := kinds.ScaleTargetOf(s.Desired)
	if !isAutoscaler || s.Resource.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor || s.State == plan.Foreign || s.State == plan.NativeObject {
		return nil
	}
	if s.Observed != nil {
		if applied, _ := kinds.ScaleTargetOf(s.Observed); applied == scaled {
			return nil
		}
	}
	first, err := c.scaledResource(ctx, s.Resource.Namespace, scaled)
	if err != nil {
		return err
	}
	if first == nil {
		s.SetFailed(v1alpha1.ReasonDependencyMissing, fmt.Sprintf(
			"%s %s is not sent to target %s, so its autoscaler is not sent; label it %s=%s, or send both by a KubernetesApplication",
			scaled.Kind, scaled.Name, s.Target.Name, v1alpha1.ScheduleLabel, v1alpha1.ScheduleRemote))
		s.ClearRemoteStatus()
		return reconciler.ErrDone
	}
	if meta.IsStatusConditionTrue(first.Status.Conditions, v1alpha1.Synced) && plan.RefersTo(first.Spec.TargetRef, s.Target) &&
		(s.IsMoving() || first.Status.Target == s.Target.Name) {
		return nil
	}
	return s.WaitForResource(first, fmt.Sprintf("%s %s is not on target %s yet", scaled.Kind, scaled.Name, s.Target.Name))
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
