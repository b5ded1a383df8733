package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// errTargetConflict means that an object has another selector or other tolerations than
// its application. Admission denies such an object, but it does not see the application
// if two objects are created at once.
var errTargetConflict = errors.New("all objects of one application run on one target")

// ensureApplication ensures the application of an object. If a selector or toleration of
// the object changes, and Portico made the application for this object alone, and the
// application has no target yet, then Portico replaces the application: a selector is
// immutable.
func (c *Controller) ensureApplication(ctx context.Context, native *unstructured.Unstructured, member policies.Membership) (*v1alpha2.KubernetesApplication, error) {
	namespace := native.GetNamespace()
	app := &v1alpha2.KubernetesApplication{}
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: member.Application}, app)
	switch {
	case err == nil && member.Agrees(app):
		return app, nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading application %s: %w", member.Application, err)
	}
	exists := err == nil
	resources, err := c.listResources(ctx, namespace, member.Application)
	if err != nil {
		return nil, err
	}
	if exists {
		switch resolveDisagreement(app, native, resources) {
		case keepApplication:
			return app, nil
		case rejectObject:
			return nil, fmt.Errorf("%w, and application %q selects targets by %q", errTargetConflict,
				app.Name, policies.FormatSelector(app.Spec.TargetSelector))
		}
		if err := c.writer.Delete(ctx, app, "replacing its target selector"); err != nil {
			return nil, err
		}
	}
	app = applicationFor(namespace, member)
	app.Spec.TargetRef = currentTarget(resources)
	return app, c.writer.Create(ctx, app, "grouping native objects")
}

// currentMembership returns the application in which an object was placed, if it has a
// target. A later change of its namespace's annotations does not move it.
func (c *Controller) currentMembership(ctx context.Context, native *unstructured.Unstructured, member policies.Membership) (policies.Membership, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := resourceKey(native)
	if err := c.hub.Get(ctx, key, resource); err != nil {
		if apierrors.IsNotFound(err) {
			return member, nil
		}
		return member, fmt.Errorf("reading resource %s: %w", key, err)
	}
	application, named := resource.Labels[v1alpha1.ApplicationLabel]
	if named && resource.Spec.TargetRef != nil && metav1.IsControlledBy(resource, native) {
		return policies.Membership{Application: application}, nil
	}
	return member, nil
}

// resolution says how intake resolves different selectors or tolerations of an
// application and one of its objects.
type resolution string

const (
	keepApplication    resolution = "Keep"    // the object already runs with the application
	replaceApplication resolution = "Replace" // the application has no other object
	rejectObject       resolution = "Reject"  // the application has other objects
)

// resolveDisagreement decides between an application and an object with another
// selector or other tolerations. Two objects never replace each other's application,
// because that would not end.
func resolveDisagreement(app *v1alpha2.KubernetesApplication, native metav1.Object, resources []v1alpha1.KubernetesApplicationResource) resolution {
	out := replaceApplication
	if app.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor || app.Spec.TargetRef != nil || app.DeletionTimestamp != nil {
		out = rejectObject
	}
	for i := range resources {
		switch {
		case !metav1.IsControlledBy(&resources[i], native):
			out = rejectObject
		case resources[i].Spec.TargetRef != nil:
			return keepApplication
		}
	}
	return out
}

// currentTarget returns the target of an application's resources, if a user deleted the
// application and its resources remained.
func currentTarget(resources []v1alpha1.KubernetesApplicationResource) *v1alpha1.TargetReference {
	for i := range resources {
		if ref := resources[i].Spec.TargetRef; ref != nil {
			return ref.DeepCopy()
		}
	}
	return nil
}

// conflictRequeueAfter is the delay before the next try of a rejected object. The
// application may have been deleted in the meantime.
const conflictRequeueAfter = 5 * time.Second

// rejectMember keeps an object out of an application with another selector or other
// tolerations. It deletes the object's resource, which has no target yet and would get
// the target of the application.
func (c *Controller) rejectMember(ctx context.Context, native *unstructured.Unstructured, reason error) error {
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := resourceKey(native)
	err := c.hub.Get(ctx, key, resource)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading resource %s: %w", key, err)
	}
	if err == nil && metav1.IsControlledBy(resource, native) && resource.DeletionTimestamp == nil {
		if err := c.writer.Delete(ctx, resource, "keeping it out of an application with other targets"); err != nil {
			return err
		}
	}
	ctrl.LoggerFrom(ctx).V(2).Info("Rejected object", "reason", reason.Error())
	events.Emit(c.recorder, native, "TakeIn", events.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: reason.Error()})
	return reconciler.RequeueAfter(conflictRequeueAfter)
}
