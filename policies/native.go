package policies

import (
	"cmp"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// NativeReview is an admission request for a native object.
type NativeReview struct {
	Kind      kinds.Kind
	Object    *unstructured.Unstructured
	Old       *unstructured.Unstructured // nil on create
	Namespace metav1.Object
	// Application returns the KubernetesApplication of a name in the object's
	// namespace, or nil.
	Application func(name string) *v1alpha2.KubernetesApplication
	// TargetsUsingSecret returns the targets, of all namespaces, whose connection
	// Secret is one of the object's namespace. A nil function returns none.
	TargetsUsingSecret func(secret string) []v1alpha1.KubernetesTarget
	// HubIngressClass tells whether the hub has an IngressClass of a name. A nil function
	// returns false.
	HubIngressClass func(name string) bool
}

var schedulePath = field.NewPath("metadata", "labels").Key(v1alpha1.ScheduleLabel)

// ValidateNative validates a native object that has, or had, the schedule label. It
// ignores errors that the stored object has already.
func ValidateNative(q NativeReview) field.ErrorList {
	errs := validateNativeObject(q.Object)
	if q.Old != nil {
		errs = RatchetErrors(errs, validateNativeObject(q.Old))
	}
	errs = append(errs, validateMove(q)...)
	errs = append(errs, kinds.Validate(q.Kind, q.Object, q.Old)...)
	if !kinds.IsRemote(q.Object) {
		return errs
	}
	errs = append(errs, validateIngressClass(q)...)
	if q.Kind == (kinds.Secret{}) && q.TargetsUsingSecret != nil && !kinds.IsRemote(q.Old) {
		secret := types.NamespacedName{Namespace: cmp.Or(q.Object.GetNamespace(), q.Namespace.GetName()), Name: q.Object.GetName()}
		if why := HubOnlyConnectionReason(secret, q.TargetsUsingSecret(secret.Name)); why != "" {
			errs = append(errs, field.Forbidden(schedulePath, fmt.Sprintf("Secret %s %s; take the label off", q.Object.GetName(), why)))
		}
	}
	now, malformed := MembershipOf(q.Object, q.Namespace)
	_, drift := DriftPolicyOf(q.Object, q.Namespace)
	if malformed = append(malformed, drift...); len(malformed) > 0 {
		// The object's own annotations are validated above. Those of the namespace are
		// an error every time, because a change could not reach a target.
		_, own := MembershipOf(q.Object, &metav1.ObjectMeta{})
		return append(errs, RatchetErrors(malformed, append(own, ValidateDriftAndObserve(q.Object)...))...)
	}
	return append(errs, validateMembership(q, now)...)
}

// validateNativeObject validates an object without its namespace and application.
func validateNativeObject(object *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	value, set := object.GetLabels()[v1alpha1.ScheduleLabel]
	if set && value != v1alpha1.ScheduleRemote && value != v1alpha1.ScheduleLocal {
		errs = append(errs, field.NotSupported(schedulePath, value,
			[]string{v1alpha1.ScheduleRemote, v1alpha1.ScheduleLocal}))
	}
	if !kinds.IsRemote(object) {
		return errs
	}
	if _, _, err := kinds.IntentOf(object); err != nil {
		var malformed *field.Error
		if errors.As(err, &malformed) {
			errs = append(errs, malformed)
		}
	}
	if why := HubOnlyReason(object); why != "" {
		errs = append(errs, field.Forbidden(schedulePath, fmt.Sprintf("%s %s %s; take the label off", object.GetKind(), object.GetName(), why)))
	}
	written := object.DeepCopy()
	if kind, known := kinds.For(object.GroupVersionKind()); known {
		kind.Release(written) // a hold may be in the selector
	}
	errs = append(errs, validateSelectorLabels(written)...)
	errs = append(errs, validateOwnershipAnnotations(object.GetAnnotations(), annotationsPath)...)
	errs = append(errs, ValidateDriftAndObserve(object)...)
	errs = append(errs, validateWithRBAC(object)...)
	_, malformed := MembershipOf(object, &metav1.ObjectMeta{})
	return append(errs, malformed...)
}

// validateMembership refuses to move a placed object to another application, and to
// join an application with another selector or other tolerations.
func validateMembership(q NativeReview, now Membership) field.ErrorList {
	if kinds.IsRemote(q.Old) {
		before, malformed := MembershipOf(q.Old, q.Namespace)
		if len(malformed) == 0 {
			if err := validatePlacedMembership(q, before, now); err != nil {
				return field.ErrorList{err}
			}
			if before.Application == now.Application {
				return nil // unchanged, or not placed yet: intake applies the change
			}
		}
	}
	application := q.Application(now.Application)
	if application == nil {
		return nil
	}
	return validateJoin(application, now)
}

// validatePlacedMembership refuses a change of the membership of an object whose
// application is placed.
func validatePlacedMembership(q NativeReview, before, now Membership) *field.Error {
	was := q.Application(before.Application)
	if was == nil || was.Spec.TargetRef == nil {
		return nil
	}
	target := was.Spec.TargetRef.Name
	switch {
	case before.Application != now.Application:
		return field.Forbidden(applicationPath, fmt.Sprintf(
			"cannot change from %q after placement on target %s; delete and re-create the %s",
			before.Application, target, q.Object.GetKind()))
	case FormatSelector(before.Selector) != FormatSelector(now.Selector) && !now.agreesOnSelector(was):
		return field.Forbidden(selectorPath, fmt.Sprintf(
			"cannot change after application %q was placed on target %s; delete and re-create its objects",
			now.Application, target))
	case FormatTolerations(before.Tolerations) != FormatTolerations(now.Tolerations) && !now.agreesOnTolerations(was):
		return field.Forbidden(tolerationsPath, fmt.Sprintf(
			"cannot change after application %q was placed on target %s; change spec.tolerations of KubernetesApplication %s first",
			now.Application, target, now.Application))
	}
	return nil
}

// validateJoin refuses to join an application with another selector or other
// tolerations.
func validateJoin(application *v1alpha2.KubernetesApplication, now Membership) field.ErrorList {
	var errs field.ErrorList
	if !now.agreesOnSelector(application) {
		errs = append(errs, field.Invalid(selectorPath, FormatSelector(now.Selector), fmt.Sprintf(
			"application %q selects targets by %q, and all objects of one application run on one target; use that selector, leave it out, or name another application with the label %s",
			now.Application, FormatSelector(application.Spec.TargetSelector), v1alpha1.ApplicationLabel)))
	}
	if !now.agreesOnTolerations(application) {
		errs = append(errs, field.Invalid(tolerationsPath, FormatTolerations(now.Tolerations), fmt.Sprintf(
			"application %q tolerates %q, and all objects of one application run on one target; use that, leave it out, or name another application with the label %s",
			now.Application, FormatTolerations(application.Spec.Tolerations), v1alpha1.ApplicationLabel)))
	}
	return errs
}

// validateSelectorLabels refuses a selector on the schedule label, which Pods on a
// target never have.
func validateSelectorLabels(object *unstructured.Unstructured) field.ErrorList {
	const remedy = "this label is Portico's and is not on the target's Pods; select by a label of your own"
	var errs field.ErrorList
	for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "selector"}} {
		selector, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		if fields, ok := selector.(map[string]any); ok {
			if _, used := fields[v1alpha1.ScheduleLabel]; used {
				errs = append(errs, field.Forbidden(field.NewPath(path[0], path[1:]...).Key(v1alpha1.ScheduleLabel), remedy))
			}
		}
	}
	expressions, _, _ := unstructured.NestedSlice(object.Object, "spec", "selector", "matchExpressions")
	for i, expression := range expressions {
		if fields, ok := expression.(map[string]any); ok && fields["key"] == v1alpha1.ScheduleLabel {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "selector", "matchExpressions").Index(i).Child("key"), remedy))
		}
	}
	return errs
}

// validateIngressClass refuses an Ingress of a class of the hub, whose controller would
// route it there. An Ingress that has the class already may be changed.
func validateIngressClass(q NativeReview) field.ErrorList {
	class := kinds.IngressClass(q.Object)
	if q.Kind != (kinds.Ingress{}) || q.HubIngressClass == nil || class == "" || class == v1alpha1.RemoteIngressClass ||
		kinds.IsRemote(q.Old) && kinds.IngressClass(q.Old) == class || !q.HubIngressClass(class) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "ingressClassName"), fmt.Sprintf(
		"%q is a class of the hub, whose controller would route this Ingress on the hub, too; "+
			"leave the class out for the default class of the target, or give the target's class another name", class))}
}

// validateMove refuses to move an object that cannot move between hub and target.
func validateMove(q NativeReview) field.ErrorList {
	if q.Old == nil || kinds.IsRemote(q.Old) == kinds.IsRemote(q.Object) {
		return nil
	}
	before, _ := kinds.ImmovableReason(q.Kind, q.Old)
	reason, remedy := kinds.ImmovableReason(q.Kind, q.Object)
	if before == "" || reason == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(schedulePath, reason+"; "+remedy)}
}
