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
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// A hub that is restored from a backup has its objects again under other UIDs, in
// any order. A resource then names an owner that is gone, and the garbage collector
// deletes it; or it names none, because backups leave owners out. Another of its name
// is made for the owner, once that has come again. That one has the object on the
// target next: nothing there is deleted, nor made again.
//
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=get

// stranger tells whether the object on the target was never written for this very
// resource, but for one of its name. A resource that its user wrote has what it finds.
func (j *journey) stranger() bool {
	return j.standing.ours() && (metav1.GetControllerOf(j.resource) != nil || ownerless(j.resource)) &&
		j.observed.GetAnnotations()[v1alpha1.ResourceUIDAnnotation] != string(j.resource.UID)
}

// inherit ends the journey of a resource whose owner is gone, or has come again
// under another UID: the object on the target is not for it to write.
func (c *Controller) inherit(ctx context.Context, j *journey) error {
	if !j.stranger() {
		return nil
	}
	lacks, err := c.lacks(ctx, j.resource)
	if err != nil || lacks == "" {
		return err
	}
	j.set(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonApplying, fmt.Sprintf(
		"this resource was restored without %s that it was made for; another is made for the one that comes, and has %s on target %s",
		lacks, policies.Remote(j.resource), j.target.Name))
	return later(nowAndThen)
}

// bequeath lets a resource that is being deleted go without its object, and tells
// whether it did: the object is for the next resource of its owner.
func (c *Controller) bequeath(ctx context.Context, j *journey) (bool, error) {
	if !j.stranger() || j.resource.Spec.LeavingTargetRef != nil {
		return false, nil
	}
	lacks, err := c.lacks(ctx, j.resource)
	if err != nil || lacks == "" {
		return false, err
	}
	j.leaveBehind(lacks)
	return true, client.IgnoreNotFound(c.finalize(ctx, j.resource, controllerutil.RemoveFinalizer))
}

// leaveBehind tells of an object that stays as it is, for somebody who may come.
func (j *journey) leaveBehind(lacks string) {
	j.done = true
	j.story = append(j.story, narrate.Event{Warning: true, Reason: v1alpha1.EventReleased, Note: fmt.Sprintf(
		"%s stays on target %s: this resource was restored without %s that it was made for; if that does not come again, delete it there",
		policies.Remote(j.resource), j.target.Name, lacks)})
}

// lacks names the owner that a resource was made for, if that is gone, or if
// another that asks for the same resource has come in its place; "" when there is
// nothing to wait for.
func (c *Controller) lacks(ctx context.Context, resource *v1alpha1.KubernetesApplicationResource) (string, error) {
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
	what := fmt.Sprintf("the %s %s", ref.Kind, ref.Name)
	err := c.live.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: ref.Name}, owner)
	if apierrors.IsNotFound(err) {
		return what, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the owner of resource %s: %w", client.ObjectKeyFromObject(resource), err)
	}
	if owner.GetUID() == ref.UID || owner.GetDeletionTimestamp() != nil || !asksFor(owner, resource.Name) {
		return "", nil
	}
	return what, nil
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
