package policies

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// Only the scheduler changes spec.targetRef: objects on the old target are deleted
// when they are ready on the new one.

// ValidateApplicationTarget refuses a change of the target of an application by a
// user. old is nil on create.
func ValidateApplicationTarget(app, old *v1alpha2.KubernetesApplication) field.ErrorList {
	if old == nil || old.Spec.TargetRef == nil || sameTarget(old.Spec.TargetRef, app.Spec.TargetRef) {
		return nil
	}
	return field.ErrorList{targetChangedError(old.Spec.TargetRef, "KubernetesApplication "+app.Name)}
}

// ValidateResourceTarget refuses a change of the target of a resource by a user. A
// user may remove spec.leavingTargetRef, so that the object on that target stays.
func ValidateResourceTarget(resource, old *v1alpha1.KubernetesApplicationResource) field.ErrorList {
	if old == nil {
		return nil
	}
	var errs field.ErrorList
	if old.Spec.TargetRef != nil && !sameTarget(old.Spec.TargetRef, resource.Spec.TargetRef) {
		moved := "it"
		if application, member := resource.Labels[v1alpha1.ApplicationLabel]; member {
			moved = "KubernetesApplication " + application
		} else if controller := metav1.GetControllerOf(resource); controller != nil {
			moved = controller.Kind + " " + controller.Name
		}
		errs = append(errs, targetChangedError(old.Spec.TargetRef, moved))
	}
	if leaving := resource.Spec.LeavingTargetRef; leaving != nil && !sameTarget(leaving, old.Spec.LeavingTargetRef) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "leavingTargetRef"), "is set by Portico only, when it moves the resource; leave it out"))
	}
	return errs
}

func targetChangedError(from *v1alpha1.TargetReference, object string) *field.Error {
	return field.Forbidden(field.NewPath("spec", "targetRef"), fmt.Sprintf(
		"cannot be changed from %q by a user, because the objects there would be left behind; annotate %s with %s=%s to move it to another target that matches",
		from.Name, object, v1alpha1.MoveFromAnnotation, from.Name))
}

func sameTarget(a, b *v1alpha1.TargetReference) bool {
	return a == b || a != nil && b != nil && *a == *b
}
