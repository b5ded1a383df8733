package policies

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// NativeQuestion asks whether a native object may be stored as it is.
type NativeQuestion struct {
	Kind      kinds.Kind
	Object    *unstructured.Unstructured
	Old       *unstructured.Unstructured // nil on create
	Namespace metav1.Object
	// Application returns the KubernetesApplication of a name in the object's
	// namespace, or nil.
	Application func(name string) *v1alpha2.KubernetesApplication
	// Targets returns those of the object's namespace. Nil is none.
	Targets func() []v1alpha1.KubernetesTarget
}

var schedulePath = field.NewPath("metadata", "labels").Key(v1alpha1.ScheduleLabel)

// ValidateNative returns what is wrong with a native object that carries, or
// carried, the schedule label, and was not before.
func ValidateNative(q NativeQuestion) field.ErrorList {
	errs := problemsOfNative(q.Object)
	if q.Old != nil {
		errs = Added(errs, problemsOfNative(q.Old))
	}
	errs = append(errs, validateMove(q)...)
	if !kinds.IsRemote(q.Object) {
		return errs
	}
	if q.Kind == (kinds.Secret{}) && q.Targets != nil && !kinds.IsRemote(q.Old) {
		if why := KeepsConnection(q.Object.GetName(), q.Targets()); why != "" {
			errs = append(errs, field.Forbidden(schedulePath, fmt.Sprintf("Secret %s %s; take the label off", q.Object.GetName(), why)))
		}
	}
	now, malformed := MembershipOf(q.Object, q.Namespace)
	_, drift := DriftOf(q.Object, q.Namespace)
	if malformed = append(malformed, drift...); len(malformed) > 0 {
		// The object's own values were judged above. A namespace's are refused
		// every time, because a change could not reach a target.
		_, own := MembershipOf(q.Object, &metav1.ObjectMeta{})
		return append(errs, Added(malformed, append(own, ProblemsOfHandling(q.Object)...))...)
	}
	return append(errs, validateMembership(q, now)...)
}

// problemsOfNative are those that an object has by itself.
func problemsOfNative(object *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	value, says := object.GetLabels()[v1alpha1.ScheduleLabel]
	if says && value != v1alpha1.ScheduleRemote && value != v1alpha1.ScheduleLocal {
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
	if why := KeepsNative(object); why != "" {
		errs = append(errs, field.Forbidden(schedulePath, fmt.Sprintf("%s %s %s; take the label off", object.GetKind(), object.GetName(), why)))
	}
	errs = append(errs, validateSelectorLabels(object)...)
	errs = append(errs, problemsOfOwnership(object.GetAnnotations(), ownAnnotations)...)
	errs = append(errs, ProblemsOfHandling(object)...)
	_, malformed := MembershipOf(object, &metav1.ObjectMeta{})
	return append(errs, malformed...)
}

// validateMembership keeps an object with the application it was placed with,
// and lets it join only an application whose selector and tolerations it shares.
func validateMembership(q NativeQuestion, now Membership) field.ErrorList {
	if kinds.IsRemote(q.Old) {
		before, malformed := MembershipOf(q.Old, q.Namespace)
		was := q.Application(before.Application)
		placed := len(malformed) == 0 && was != nil && was.Spec.TargetRef != nil
		switch {
		case placed && before.Application != now.Application:
			return field.ErrorList{field.Forbidden(applicationPath, fmt.Sprintf(
				"cannot change from %q after placement on target %s; delete and re-create the %s",
				before.Application, was.Spec.TargetRef.Name, q.Object.GetKind()))}
		case placed && SelectorText(before.Selector) != SelectorText(now.Selector) && !now.agreesOnSelector(was):
			return field.ErrorList{field.Forbidden(selectorPath, fmt.Sprintf(
				"cannot change after application %q was placed on target %s; delete and re-create its objects",
				now.Application, was.Spec.TargetRef.Name))}
		case placed && TolerationsText(before.Tolerations) != TolerationsText(now.Tolerations) && !now.agreesOnTolerations(was):
			return field.ErrorList{field.Forbidden(tolerationsPath, fmt.Sprintf(
				"cannot change after application %q was placed on target %s; change spec.tolerations of KubernetesApplication %s first",
				now.Application, was.Spec.TargetRef.Name, now.Application))}
		case len(malformed) == 0 && before.Application == now.Application:
			return nil // unchanged, or nothing runs yet and intake follows the change
		}
	}
	application := q.Application(now.Application)
	if application == nil {
		return nil
	}
	var errs field.ErrorList
	if !now.agreesOnSelector(application) {
		errs = append(errs, field.Invalid(selectorPath, SelectorText(now.Selector), fmt.Sprintf(
			"application %q selects targets by %q, and all objects of one application run on one target; use that selector, leave it out, or name another application with the label %s",
			now.Application, SelectorText(application.Spec.TargetSelector), v1alpha1.ApplicationLabel)))
	}
	if !now.agreesOnTolerations(application) {
		errs = append(errs, field.Invalid(tolerationsPath, TolerationsText(now.Tolerations), fmt.Sprintf(
			"application %q tolerates %q, and all objects of one application run on one target; use that, leave it out, or name another application with the label %s",
			now.Application, TolerationsText(application.Spec.Tolerations), v1alpha1.ApplicationLabel)))
	}
	return errs
}

// validateSelectorLabels refuses a selector on Portico's own label: the label
// is never on the target's Pods.
func validateSelectorLabels(object *unstructured.Unstructured) field.ErrorList {
	const wayOut = "this label is Portico's and is not on the target's Pods; select by a label of your own"
	var errs field.ErrorList
	for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "selector"}} {
		selector, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		if fields, ok := selector.(map[string]any); ok {
			if _, used := fields[v1alpha1.ScheduleLabel]; used {
				errs = append(errs, field.Forbidden(field.NewPath(path[0], path[1:]...).Key(v1alpha1.ScheduleLabel), wayOut))
			}
		}
	}
	expressions, _, _ := unstructured.NestedSlice(object.Object, "spec", "selector", "matchExpressions")
	for i, expression := range expressions {
		if fields, ok := expression.(map[string]any); ok && fields["key"] == v1alpha1.ScheduleLabel {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "selector", "matchExpressions").Index(i).Child("key"), wayOut))
		}
	}
	return errs
}

// validateMove refuses to move a load balancer: its class, which decides whose
// it is, is immutable.
func validateMove(q NativeQuestion) field.ErrorList {
	if q.Old == nil || q.Kind != (kinds.Service{}) || !kinds.IsLoadBalancer(q.Old) || !kinds.IsLoadBalancer(q.Object) {
		return nil
	}
	const wayOut = "a LoadBalancer cannot move between clusters, because its loadBalancerClass is immutable; delete and re-create the Service, or change its type to ClusterIP in the same edit"
	if kinds.IsRemote(q.Old) != kinds.IsRemote(q.Object) {
		return field.ErrorList{field.Forbidden(schedulePath, wayOut)}
	}
	return nil
}
