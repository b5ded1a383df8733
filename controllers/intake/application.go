package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/narrate"
	"github.com/portico-io/portico/policies"
)

// errDisagrees says that an object asks for other targets than its application
// does. Admission refuses that, but of two objects created at once it sees
// neither's application.
var errDisagrees = errors.New("all objects of one application run on one target")

// application ensures the application an object belongs to. One that Portico
// made for this object alone, and that runs nowhere yet, follows a changed
// selector or toleration by being made anew: a selector is immutable.
func (c *Controller) application(ctx context.Context, native *unstructured.Unstructured, member policies.Membership) (*v1alpha2.KubernetesApplication, error) {
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
	resources, err := c.membersOf(ctx, namespace, member.Application)
	if err != nil {
		return nil, err
	}
	if exists {
		switch settle(app, native, resources) {
		case keep:
			return app, nil
		case refuse:
			return nil, fmt.Errorf("%w, and application %q selects targets by %q", errDisagrees,
				app.Name, policies.SelectorText(app.Spec.TargetSelector))
		}
		if err := c.hub.Delete(ctx, app, client.Preconditions{UID: &app.UID, ResourceVersion: &app.ResourceVersion}); err != nil {
			return nil, fmt.Errorf("replacing application %s: %w", member.Application, err)
		}
	}
	app = applicationFor(namespace, member)
	app.Spec.TargetRef = placed(resources)
	if err := c.hub.Create(ctx, app, client.FieldOwner(v1alpha1.IntakeManager)); err != nil {
		return nil, fmt.Errorf("creating application %s: %w", member.Application, err)
	}
	return app, nil
}

// stays keeps an object that runs on a target in the application it was placed
// with, whatever its namespace says by now of the objects in it.
func (c *Controller) stays(ctx context.Context, native *unstructured.Unstructured, member policies.Membership) (policies.Membership, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: native.GetNamespace(), Name: kinds.ResourceName(native.GetKind(), native.GetName())}
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

// settlement is what becomes of an application and a member that disagree.
type settlement string

const (
	keep    settlement = "Keep"    // the member runs with it already
	replace settlement = "Replace" // it is this member's alone
	refuse  settlement = "Refuse"  // others are in it, or come before
)

// settle decides between an application and a member that asks for other
// targets. Two members that replaced each other's would never end.
func settle(app *v1alpha2.KubernetesApplication, native metav1.Object, resources []v1alpha1.KubernetesApplicationResource) settlement {
	out := replace
	if app.Labels[v1alpha1.FrontDoorLabel] != v1alpha1.FrontDoor || app.Spec.TargetRef != nil || app.DeletionTimestamp != nil {
		out = refuse
	}
	for i := range resources {
		switch {
		case !metav1.IsControlledBy(&resources[i], native):
			out = refuse
		case resources[i].Spec.TargetRef != nil:
			return keep
		}
	}
	return out
}

// placed is where an application's resources are, when the application itself
// was deleted under them.
func placed(resources []v1alpha1.KubernetesApplicationResource) *v1alpha1.TargetReference {
	for i := range resources {
		if ref := resources[i].Spec.TargetRef; ref != nil {
			return ref.DeepCopy()
		}
	}
	return nil
}

// reconsider is how soon an object that was turned away is looked at again: the
// application it disagrees with may go.
const reconsider = 5 * time.Second

// turnAway keeps an object from running where it did not ask to: its resource,
// which runs nowhere yet, would go along with its application.
func (c *Controller) turnAway(ctx context.Context, native *unstructured.Unstructured, why error) (reconcile.Result, error) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := client.ObjectKey{Namespace: native.GetNamespace(), Name: kinds.ResourceName(native.GetKind(), native.GetName())}
	err := c.hub.Get(ctx, key, resource)
	if err == nil && metav1.IsControlledBy(resource, native) && resource.DeletionTimestamp == nil {
		err = c.hub.Delete(ctx, resource, client.Preconditions{UID: &resource.UID, ResourceVersion: &resource.ResourceVersion})
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("withdrawing resource %s: %w", key, err)
	}
	narrate.Tell(c.recorder, native, "TakeIn", narrate.Event{Warning: true, Reason: v1alpha1.ReasonRefused, Note: why.Error()})
	return reconcile.Result{RequeueAfter: reconsider}, nil
}
