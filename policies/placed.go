package policies

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// Where something runs is the scheduler's to change, because what it leaves has
// to be deleted there, once it is ready elsewhere.

// KeepApplicationPlaced returns how somebody who is not Portico would change where
// an application runs. old is nil on create.
func KeepApplicationPlaced(app, old *v1alpha2.KubernetesApplication) field.ErrorList {
	if old == nil || old.Spec.TargetRef == nil || same(old.Spec.TargetRef, app.Spec.TargetRef) {
		return nil
	}
	return field.ErrorList{movedByHand(old.Spec.TargetRef, "KubernetesApplication "+app.Name)}
}

// KeepResourcePlaced returns the same of a resource. The target it leaves may be
// forgotten by hand, if what is there shall stay.
func KeepResourcePlaced(resource, old *v1alpha1.KubernetesApplicationResource) field.ErrorList {
	if old == nil {
		return nil
	}
	var errs field.ErrorList
	if old.Spec.TargetRef != nil && !same(old.Spec.TargetRef, resource.Spec.TargetRef) {
		who := "it"
		if application, member := resource.Labels[v1alpha1.ApplicationLabel]; member {
			who = "KubernetesApplication " + application
		} else if controller := metav1.GetControllerOf(resource); controller != nil {
			who = controller.Kind + " " + controller.Name
		}
		errs = append(errs, movedByHand(old.Spec.TargetRef, who))
	}
	if leaving := resource.Spec.LeavingTargetRef; leaving != nil && !same(leaving, old.Spec.LeavingTargetRef) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "leavingTargetRef"), "is Portico's to set, when it moves the resource; leave it out"))
	}
	return errs
}

func movedByHand(from *v1alpha1.TargetReference, who string) *field.Error {
	return field.Forbidden(field.NewPath("spec", "targetRef"), fmt.Sprintf(
		"cannot change from %q by hand, because what runs there would be left behind; annotate %s with %s=%s, and it moves to another target that matches",
		from.Name, who, v1alpha1.MoveFromAnnotation, from.Name))
}

func same(a, b *v1alpha1.TargetReference) bool {
	return a == b || a != nil && b != nil && *a == *b
}
