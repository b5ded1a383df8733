package propagation

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// The objects of a hub that was restored from a backup have other UIDs. They are
// restored in any order, and in some backups without owner references. So a resource
// may name an owner that does not exist, and is then garbage-collected; or it names no
// owner. When the owner is restored, a new resource of the same name is created for it.
// The new resource takes over the object on the target: the object is neither deleted
// nor created again.
//
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=get

// checkOwner ends the reconcile of a resource whose owner is gone, or was restored with
// another UID: the next resource of that owner applies the object.
func (c *Controller) checkOwner(ctx context.Context, s *scope.Scope) error {
	if !s.WrittenByPredecessor() {
		return nil
	}
	missing, err := c.missingOwner(ctx, s.Resource)
	if err != nil || missing == "" {
		return err
	}
	s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, fmt.Sprintf(
		"this resource was restored without its owner, %s; when the owner is restored, it gets another resource, which takes over %s on target %s",
		missing, policies.RemoteObjectName(s.Resource), s.Target.Name))
	return reconciler.RequeueAfter(scope.PollInterval)
}

// leaveToSuccessor removes the finalizer of a resource that is being deleted, and
// leaves the object to the next resource of its owner. It returns false if there is no
// such owner.
func (c *remover) leaveToSuccessor(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.WrittenByPredecessor() || s.Resource.Spec.LeavingTargetRef != nil {
		return false, nil
	}
	missing, err := c.missingOwner(ctx, s.Resource)
	if err != nil || missing == "" {
		return false, err
	}
	if err := c.leaveShared(ctx, s); err != nil {
		return false, err
	}
	s.KeepForSuccessor(missing)
	return true, c.writer.RemoveFinalizer(ctx, s.Resource, v1alpha1.PropagationFinalizer)
}

// missingOwner returns the name of a resource's owner if the owner does not exist, or
// if another object of its name gets the same resource. Otherwise it returns "".
func (c *base) missingOwner(ctx context.Context, resource *v1alpha1.KubernetesApplicationResource) (string, error) {
	ref := metav1.GetControllerOf(resource)
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	_, native := kinds.For(gvk)
	native = native || policies.IsSharedDependency(resource)
	var owner client.Object
	switch {
	case native:
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		owner = object
	case gvk.GroupKind() == v1alpha2.GroupVersion.WithKind("KubernetesApplication").GroupKind():
		owner = &v1alpha2.KubernetesApplication{}
	default:
		return "", nil // an owner of a kind that Portico does not read
	}
	name := fmt.Sprintf("the %s %s", ref.Kind, ref.Name)
	err := c.live.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: ref.Name}, owner)
	if apierrors.IsNotFound(err) {
		return name, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the owner of resource %s: %w", client.ObjectKeyFromObject(resource), err)
	}
	if owner.GetUID() == ref.UID || owner.GetDeletionTimestamp() != nil || !wantsResource(owner, resource) {
		return "", nil
	}
	return name, nil
}

// wantsResource tells whether an owner gets a resource of the same name. A shared
// dependency gets one when other resources that were restored need it.
func wantsResource(owner client.Object, resource *v1alpha1.KubernetesApplicationResource) bool {
	name := resource.Name
	switch o := owner.(type) {
	case *unstructured.Unstructured:
		if policies.IsSharedDependency(resource) {
			return kinds.IsNameOfDependency(name, o.GetKind(), o.GetName())
		}
		return kinds.IsRemote(o) && kinds.ResourceNameOf(o.GroupVersionKind().GroupKind(), o.GetName()) == name
	case *v1alpha2.KubernetesApplication:
		return slices.ContainsFunc(o.Spec.ResourceTemplates, func(t v1alpha2.ResourceTemplate) bool { return t.Metadata.Name == name })
	}
	return false
}
