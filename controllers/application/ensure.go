package application

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications/finalizers,verbs=update

// OwnerIndex finds resources by the name of the application that made them,
// whatever became of their labels.
const OwnerIndex = "metadata.controller.application"

// IndexOwner is OwnerIndex's function.
func IndexOwner(object client.Object) []string {
	if ref := metav1.GetControllerOf(object); ref != nil && isApplication(ref) {
		return []string{ref.Name}
	}
	return nil
}

// hands is how many resources of one application are written at the same time.
// Each write waits for the hub's webhooks, and an application may have hundreds.
const hands = 8

// obstacle is why a template has not become a resource, or not that of its
// newest version.
type obstacle struct {
	reason, message string
}

// ensure makes an application's resources what its templates say, and deletes
// those it no longer has a template for. One that cannot be made holds up no
// other; why it cannot is returned under its name.
func (c *Controller) ensure(ctx context.Context, app *v1alpha2.KubernetesApplication) (map[string]obstacle, error) {
	owned, err := c.owned(ctx, app)
	if err != nil {
		return nil, err
	}
	if len(owned) == 0 && len(app.Spec.ResourceTemplates) == 0 {
		return nil, nil
	}
	if err := c.finalize(ctx, app, controllerutil.AddFinalizer); err != nil {
		return nil, err
	}
	problems := policies.TemplateProblems(app) // admission may have been away
	stand, errs := make([]*obstacle, len(problems)), make([]error, len(problems))
	for _, wave := range waves(app.Spec.ResourceTemplates) {
		workqueue.ParallelizeUntil(ctx, hands, len(wave), func(n int) {
			i := wave[n]
			if len(problems[i]) > 0 {
				stand[i] = &obstacle{v1alpha1.ReasonInvalidTemplate, problems[i].ToAggregate().Error()}
				return
			}
			stand[i], errs[i] = c.template(ctx, app, resourceOf(app, app.Spec.ResourceTemplates[i]))
		})
	}
	errs = append(errs, ctx.Err()) // which leaves some undone
	obstacles := map[string]obstacle{}
	wanted := map[string]bool{}
	for i, template := range app.Spec.ResourceTemplates {
		wanted[template.Metadata.Name] = true
		if stand[i] != nil {
			obstacles[template.Metadata.Name] = *stand[i]
		}
	}
	for i := range owned {
		if !wanted[owned[i].Name] {
			errs = append(errs, c.discard(ctx, &owned[i], metav1.DeletePropagationBackground))
		}
	}
	return obstacles, errors.Join(errs...)
}

// template makes or updates one resource.
func (c *Controller) template(ctx context.Context, app *v1alpha2.KubernetesApplication, desired *v1alpha1.KubernetesApplicationResource) (*obstacle, error) {
	key := client.ObjectKeyFromObject(desired)
	current := &v1alpha1.KubernetesApplicationResource{}
	err := c.hub.Get(ctx, key, current)
	if apierrors.IsNotFound(err) {
		err = c.hub.Create(ctx, desired, client.FieldOwner(v1alpha1.ApplicationManager))
		switch {
		case apierrors.IsAlreadyExists(err): // and on its way to the cache, which brings us back
			return &obstacle{v1alpha1.ReasonApplying, "is being made"}, nil
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
			return &obstacle{v1alpha1.ReasonRefused, "was refused by the hub: " + said(err)}, err
		case err != nil:
			return nil, fmt.Errorf("creating resource %s: %w", key, err)
		}
		return nil, nil
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading resource %s: %w", key, err)
	case !madeBy(current, app):
		return &obstacle{v1alpha1.ReasonOwnershipConflict, fmt.Sprintf(
			"KubernetesApplicationResource %s exists already and %s; it was not touched, give the template another metadata.name", key.Name, whose(current))}, nil
	case current.DeletionTimestamp != nil:
		return &obstacle{v1alpha1.ReasonWithdrawing, "the one before it is still being deleted"}, nil
	}
	before := current.DeepCopy()
	revise(current, desired)
	if equality.Semantic.DeepEqual(before, current) {
		return nil, nil
	}
	// Locked, because what differs from an old copy is not what differs.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = c.hub.Patch(ctx, current, patch, client.FieldOwner(v1alpha1.ApplicationManager))
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return &obstacle{v1alpha1.ReasonRefused, "was refused by the hub: " + said(err)}, err
	case err != nil:
		return nil, client.IgnoreNotFound(fmt.Errorf("updating resource %s: %w", key, err))
	}
	return nil, nil
}

// said is what the hub answered.
func said(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// owned lists the resources that an application made.
func (c *Controller) owned(ctx context.Context, app *v1alpha2.KubernetesApplication) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(ctx, &list, client.InNamespace(app.Namespace), client.MatchingFields{OwnerIndex: app.Name}); err != nil {
		return nil, fmt.Errorf("listing what application %s made: %w", client.ObjectKeyFromObject(app), err)
	}
	return list.Items, nil
}

// discard deletes a resource as it was seen: one that changed since may be
// somebody else's by now.
func (c *Controller) discard(ctx context.Context, resource *v1alpha1.KubernetesApplicationResource, how metav1.DeletionPropagation) error {
	if resource.DeletionTimestamp != nil {
		return nil
	}
	err := c.hub.Delete(ctx, resource, client.PropagationPolicy(how),
		client.Preconditions{UID: ptr.To(resource.UID), ResourceVersion: ptr.To(resource.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting resource %s: %w", client.ObjectKeyFromObject(resource), err)
	}
	return nil
}

// finalize adds or removes the application's finalizer.
func (c *Controller) finalize(ctx context.Context, app *v1alpha2.KubernetesApplication, change func(client.Object, string) bool) error {
	before := app.DeepCopy()
	if !change(app, v1alpha1.TemplatesFinalizer) {
		return nil
	}
	status := app.Status
	err := c.hub.Patch(ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.ApplicationManager))
	app.Status = status
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("changing the finalizer of application %s: %w", client.ObjectKeyFromObject(app), err))
	}
	return nil
}
