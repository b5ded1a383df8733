package application

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplicationresources,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications,verbs=patch
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetesapplications/finalizers,verbs=update

// OwnerIndex finds resources by the name of the application that controls them. Their
// labels may name another application.
const OwnerIndex = "metadata.controller.application"

// IndexOwner is the function of OwnerIndex.
func IndexOwner(object client.Object) []string {
	if ref := metav1.GetControllerOf(object); ref != nil && isApplication(ref) {
		return []string{ref.Name}
	}
	return nil
}

// maxConcurrentWrites bounds the parallel writes of one application. Each write waits
// for the hub's webhooks, and an application may have hundreds of resources.
const maxConcurrentWrites = 8

// templateProblem is the reason why a template has no resource, or only a resource of
// an older version of the template.
type templateProblem struct {
	reason, message string
}

// ensureResources creates and updates the resources of the application's templates, and
// deletes resources without a template. A problem of a template does not delay the
// others.
func (c *Controller) ensureResources(ctx context.Context, s *scope) error {
	owned, err := c.listTemplatedResources(ctx, s.app)
	if err != nil {
		s.errs = append(s.errs, err)
		return nil
	}
	if len(owned) == 0 && len(s.app.Spec.ResourceTemplates) == 0 {
		return nil
	}
	if err := c.writer.AddFinalizer(ctx, s.app, v1alpha1.TemplatesFinalizer); err != nil {
		s.errs = append(s.errs, err)
		return nil
	}
	s.ensureTemplates(ctx, c)
	templated := map[string]bool{}
	for _, template := range s.app.Spec.ResourceTemplates {
		templated[template.Metadata.Name] = true
	}
	for i := range owned {
		if !templated[owned[i].Name] {
			s.errs = append(s.errs, c.deleteResource(ctx, &owned[i], metav1.DeletePropagationBackground))
		}
	}
	return nil
}

// ensureTemplates makes the resource of each template, wave after wave.
func (s *scope) ensureTemplates(ctx context.Context, c *Controller) {
	templates := s.app.Spec.ResourceTemplates
	invalid := policies.ValidateTemplates(s.app) // admission may have been unavailable
	problems, errs := make([]*templateProblem, len(templates)), make([]error, len(templates))
	for _, wave := range creationWaves(templates) {
		workqueue.ParallelizeUntil(ctx, maxConcurrentWrites, len(wave), func(n int) {
			i := wave[n]
			if len(invalid[i]) > 0 {
				problems[i] = &templateProblem{v1alpha1.ReasonInvalidTemplate, invalid[i].ToAggregate().Error()}
				return
			}
			problems[i], errs[i] = c.ensureResource(ctx, s.app, resourceFromTemplate(s.app, templates[i]))
		})
	}
	s.errs = append(append(s.errs, errs...), ctx.Err()) // the context was cancelled before all templates were done
	s.problems = map[string]templateProblem{}
	for i, problem := range problems {
		if problem != nil {
			name := templates[i].Metadata.Name
			s.problems[name] = *problem
			ctrl.LoggerFrom(ctx).V(2).Info("Skipped template", "resource", klog.KRef(s.app.Namespace, name), "reason", problem.reason)
		}
	}
}

// ensureResource creates or updates the resource of one template.
func (c *Controller) ensureResource(ctx context.Context, app *v1alpha2.KubernetesApplication, desired *v1alpha1.KubernetesApplicationResource) (*templateProblem, error) {
	key := client.ObjectKeyFromObject(desired)
	current := &v1alpha1.KubernetesApplicationResource{}
	err := c.hub.Get(ctx, key, current)
	if apierrors.IsNotFound(err) {
		err = c.writer.Create(ctx, desired, "creating from its template")
		if apierrors.IsAlreadyExists(err) { // the cache is behind, and its update queues the application
			return &templateProblem{v1alpha1.ReasonApplying, "is being created"}, nil
		}
		return rejection(err), err
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading resource %s: %w", key, err)
	case !madeBy(current, app):
		return &templateProblem{v1alpha1.ReasonOwnershipConflict, fmt.Sprintf(
			"KubernetesApplicationResource %s already exists and %s; it was not changed: give the template another metadata.name", key.Name, describeOwner(current))}, nil
	case current.DeletionTimestamp != nil:
		return &templateProblem{v1alpha1.ReasonWithdrawing, "the previous resource of this name is still being deleted"}, nil
	}
	before := current.DeepCopy()
	updateFromTemplate(current, desired)
	_, err = c.writer.Patch(ctx, before, current, "updating from its template")
	return rejection(err), err
}

// rejection returns the problem of a template whose resource the hub rejected; nil for
// other errors, after which the reconcile runs again.
func rejection(err error) *templateProblem {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return &templateProblem{v1alpha1.ReasonRefused, "was refused by the hub: " + apiMessage(err)}
	}
	return nil
}

// apiMessage returns the message of an API server's error.
func apiMessage(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// listTemplatedResources lists the resources that an application controls. The cache
// owns them: copy one before a change.
func (c *Controller) listTemplatedResources(ctx context.Context, app *v1alpha2.KubernetesApplication) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	err := c.hub.List(ctx, &list, client.InNamespace(app.Namespace), client.MatchingFields{OwnerIndex: app.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the templated resources of application %s: %w", client.ObjectKeyFromObject(app), err)
	}
	return list.Items, nil
}

// deleteResource deletes a resource if it did not change since it was read. A changed
// resource may have another owner.
func (c *Controller) deleteResource(ctx context.Context, resource *v1alpha1.KubernetesApplicationResource, propagation metav1.DeletionPropagation) error {
	if resource.DeletionTimestamp != nil {
		return nil
	}
	return c.writer.Delete(ctx, resource, "deleting with its template or application", client.PropagationPolicy(propagation))
}
