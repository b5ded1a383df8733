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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// A hub that is restored from a backup has its objects again under other UIDs. A
// resource then names an owner that is gone, and the garbage collector deletes it,
// while another of its name is made for the owner that came in its place. That one
// has the object on the target next: nothing there is deleted, nor made again.
//
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=get

// stranger tells whether the object on the target was never written for this very
// resource, but for one of its name.
func (j *journey) stranger() bool {
	return (j.standing == inSync || j.standing == drifted) && metav1.GetControllerOf(j.resource) != nil &&
		j.observed.GetAnnotations()[v1alpha1.ResourceUIDAnnotation] != string(j.resource.UID)
}

// inherit ends the journey of a resource whose owner has come again under another
// UID: the object on the target is not for it to write.
func (c *Controller) inherit(ctx context.Context, j *journey) error {
	if !j.stranger() {
		return nil
	}
	heir, err := c.heir(ctx, j.resource)
	if err != nil || heir == "" {
		return err
	}
	j.set(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying,
		fmt.Sprintf("this resource was restored together with %s, which is another object now, and gets a resource of its own", heir))
	return later(nowAndThen)
}

// bequeath lets a resource that is being deleted go without its object, and tells
// whether it did: its owner has come again, and the object is for its next resource.
func (c *Controller) bequeath(ctx context.Context, j *journey) (bool, error) {
	if !j.stranger() || j.resource.Spec.LeavingTargetRef != nil {
		return false, nil
	}
	heir, err := c.heir(ctx, j.resource)
	if err != nil || heir == "" {
		return false, err
	}
	j.done = true
	return true, client.IgnoreNotFound(c.finalize(ctx, j.resource, controllerutil.RemoveFinalizer))
}

// heir names the object that has come in the place of a resource's owner, and asks
// for the same resource; "" when there is none.
func (c *Controller) heir(ctx context.Context, resource *v1alpha1.KubernetesApplicationResource) (string, error) {
	ref := metav1.GetControllerOf(resource)
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	_, native := kinds.For(gvk)
	var owner client.Object
	switch {
	case native:
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		owner = object
	case gvk.GroupKind() == v1alpha2.GroupVersion.WithKind("KubernetesApplication").GroupKind():
		owner = &v1alpha2.KubernetesApplication{}
	default:
		return "", nil // of a kind that Portico does not read
	}
	err := c.live.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: ref.Name}, owner)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading the owner of resource %s: %w", client.ObjectKeyFromObject(resource), err)
	}
	if err != nil || owner.GetUID() == ref.UID || owner.GetDeletionTimestamp() != nil || !asksFor(owner, resource.Name) {
		return "", nil
	}
	return ref.Kind + " " + ref.Name, nil
}

// asksFor tells whether an owner has a resource of a name made for it.
func asksFor(owner client.Object, name string) bool {
	switch o := owner.(type) {
	case *unstructured.Unstructured:
		return kinds.IsRemote(o) && kinds.ResourceName(o.GetKind(), o.GetName()) == name
	case *v1alpha2.KubernetesApplication:
		return slices.ContainsFunc(o.Spec.ResourceTemplates, func(t v1alpha2.ResourceTemplate) bool { return t.Metadata.Name == name })
	}
	return false
}
