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
}

var schedulePath = field.NewPath("metadata", "labels").Key(v1alpha1.ScheduleLabel)

// ValidateNative returns what is wrong with a native object that carries, or
// carried, the schedule label. What was already wrong may stay, so that an
// object can be edited towards right.
func ValidateNative(q NativeQuestion) field.ErrorList {
	var errs field.ErrorList
	value, says := q.Object.GetLabels()[v1alpha1.ScheduleLabel]
	if says && value != v1alpha1.ScheduleRemote && value != v1alpha1.ScheduleLocal {
		if q.Old == nil || q.Old.GetLabels()[v1alpha1.ScheduleLabel] != value {
			errs = append(errs, field.NotSupported(schedulePath, value,
				[]string{v1alpha1.ScheduleRemote, v1alpha1.ScheduleLocal}))
		}
	}
	errs = append(errs, validateMove(q)...)
	if !kinds.IsRemote(q.Object) {
		return errs
	}

	if _, _, err := kinds.IntentOf(q.Object); err != nil {
		var malformed *field.Error
		if errors.As(err, &malformed) {
			errs = append(errs, malformed)
		}
	}
	errs = append(errs, validateSelectorLabels(q.Object)...)
	now, malformed := MembershipOf(q.Object, q.Namespace)
	if len(malformed) > 0 {
		return append(errs, malformed...)
	}
	return append(errs, validateMembership(q, now)...)
}

// validateMembership keeps an object with the application it was placed with.
func validateMembership(q NativeQuestion, now Membership) field.ErrorList {
	if kinds.IsRemote(q.Old) {
		before, malformed := MembershipOf(q.Old, q.Namespace)
		placed := q.Application(before.Application)
		switch {
		case len(malformed) > 0 || placed == nil || placed.Spec.TargetRef == nil:
			return nil // nothing runs yet; intake follows the change
		case before.Application != now.Application:
			return field.ErrorList{field.Forbidden(applicationPath, fmt.Sprintf(
				"cannot change from %q after placement on target %s; delete and re-create the %s",
				before.Application, placed.Spec.TargetRef.Name, q.Object.GetKind()))}
		case SelectorText(before.Selector) != SelectorText(now.Selector) && !now.Agrees(placed):
			return field.ErrorList{field.Forbidden(selectorPath, fmt.Sprintf(
				"cannot change after application %q was placed on target %s; delete and re-create its objects",
				now.Application, placed.Spec.TargetRef.Name))}
		}
		return nil
	}
	if application := q.Application(now.Application); application != nil && !now.Agrees(application) {
		return field.ErrorList{field.Invalid(selectorPath, SelectorText(now.Selector), fmt.Sprintf(
			"application %q selects targets by %q, and all objects of one application run on one target; use that selector, leave it out, or name another application with the label %s",
			now.Application, SelectorText(application.Spec.TargetSelector), v1alpha1.ApplicationLabel))}
	}
	return nil
}

// validateSelectorLabels refuses a selector on Portico's own label: the label
// is never on the target's Pods.
func validateSelectorLabels(object *unstructured.Unstructured) field.ErrorList {
	for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "selector"}} {
		selector, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		if fields, ok := selector.(map[string]any); ok {
			if _, used := fields[v1alpha1.ScheduleLabel]; used {
				return field.ErrorList{field.Forbidden(field.NewPath(path[0], path[1:]...).Key(v1alpha1.ScheduleLabel),
					"this label is Portico's and is not on the target's Pods; select by a label of your own")}
			}
		}
	}
	return nil
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
