// Package propagationkinds decides which kinds PropagationKinds add to the registry, and
// which rights Portico needs to them.
package propagationkinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/groups"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// SubresourceStatus is the subresource that Portico writes, if a kind has it.
const SubresourceStatus = "status"

// Validate returns the errors in the spec of a PropagationKind.
func Validate(kind *v1alpha1.PropagationKind) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	switch group := kind.Spec.Group; {
	case groups.IsBuiltIn(group):
		errs = append(errs, field.Forbidden(spec.Child("group"), fmt.Sprintf(
			"%q is a group of Kubernetes; kubectl portico kinds lists its kinds that are sent, and a KubernetesApplication sends objects of the others", group)))
	case groups.IsPortico(group):
		errs = append(errs, field.Forbidden(spec.Child("group"), fmt.Sprintf("%q is a group of Portico, whose objects remain on the hub", group)))
	}
	for i, path := range kind.Spec.StatusPaths {
		if _, err := statusPath(path); err != nil {
			errs = append(errs, field.Invalid(spec.Child("statusPaths").Index(i), path, err.Error()))
		}
	}
	return append(errs, policies.ValidateReadiness(kind.Spec.Readiness, spec.Child("readiness"))...)
}

// ValidateScope returns an error for a kind of the hub without namespaces.
func ValidateScope(kind *v1alpha1.PropagationKind, namespaced bool) field.ErrorList {
	if namespaced {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "kind"), kind.Spec.Kind,
		"has no namespaces; a KubernetesApplication sends its objects to a target whose spec.allow.kinds lists the kind")}
}

// statusPath reads the path of a field of the status, such as .status.conditions.
func statusPath(path string) ([]string, error) {
	parts := strings.Split(path, ".")
	if len(parts) < 3 || parts[0] != "" || parts[1] != "status" || slices.Contains(parts[2:], "") || strings.ContainsAny(path, "[]*\"' ") {
		return nil, fmt.Errorf("is not the path of a field of the status, such as .status.conditions; a path into a list is not possible")
	}
	return parts[2:], nil
}

// KindOf returns the kind that a PropagationKind adds to the registry, and false while it is
// not ready.
func KindOf(kind *v1alpha1.PropagationKind) (*kinds.Custom, bool) {
	ready := apimeta.FindStatusCondition(kind.Status.Conditions, v1alpha1.Ready)
	if ready == nil || ready.Status != metav1.ConditionTrue || kind.DeletionTimestamp != nil || len(Validate(kind)) > 0 {
		return nil, false
	}
	out := &kinds.Custom{
		Served:    schema.GroupVersionKind{Group: kind.Spec.Group, Version: kind.Status.Version, Kind: kind.Spec.Kind},
		Plural:    kind.Status.Resource,
		HasStatus: slices.Contains(kind.Status.Subresources, SubresourceStatus),
		Readiness: kind.Spec.Readiness,
	}
	for _, text := range kind.Spec.StatusPaths {
		path, _ := statusPath(text)
		out.StatusPaths = append(out.StatusPaths, path)
	}
	return out, true
}

// Served is a kind as the hub serves it.
type Served struct {
	Version, Resource string
	Namespaced        bool
	HasStatus         bool
}

// Rules returns the rights that Portico needs to a kind.
func Rules(group string, served Served) []rbacv1.PolicyRule {
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	rules := []rbacv1.PolicyRule{
		rule(served.Resource, "get", "list", "watch"),
		// The resource of an object has an owner reference that delays the deletion of the object.
		rule(served.Resource+"/finalizers", "update"),
	}
	if served.HasStatus {
		rules = append(rules, rule(served.Resource+"/"+SubresourceStatus, "patch"))
	}
	return rules
}

// Attributes returns the requests of a rule, for access reviews.
func Attributes(rule rbacv1.PolicyRule, version string) []*authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	var out []*authorizationv1.ResourceAttributes
	for _, verb := range rule.Verbs {
		out = append(out, &authorizationv1.ResourceAttributes{
			Group: rule.APIGroups[0], Version: version, Resource: resource, Subresource: subresource, Verb: verb,
		})
	}
	return out
}

// Find returns a kind in the list of the resources of its group and version, or nil.
func Find(list *metav1.APIResourceList, kind, version string) *Served {
	var out *Served
	for _, resource := range list.APIResources {
		if resource.Kind == kind && !strings.Contains(resource.Name, "/") {
			out = &Served{Version: version, Resource: resource.Name, Namespaced: resource.Namespaced}
		}
	}
	if out != nil {
		out.HasStatus = slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == out.Resource+"/"+SubresourceStatus })
	}
	return out
}

// Observe sets the status of a PropagationKind. served is nil for a kind that the hub does
// not have, and missing are the rights that Portico lacks.
func Observe(kind *v1alpha1.PropagationKind, served *Served, missing []rbacv1.PolicyRule) {
	set := func(status metav1.ConditionStatus, reason, message string) {
		apimeta.SetStatusCondition(&kind.Status.Conditions, metav1.Condition{
			Type: v1alpha1.Ready, Status: status, Reason: reason, Message: message, ObservedGeneration: kind.Generation,
		})
	}
	if errs := Validate(kind); len(errs) > 0 {
		set(metav1.ConditionFalse, v1alpha1.ReasonInvalidKind, errs.ToAggregate().Error())
		return
	}
	name := kind.Spec.Kind + " of " + kind.Spec.Group
	if served == nil {
		set(metav1.ConditionFalse, v1alpha1.ReasonKindMissing, fmt.Sprintf(
			"the hub has no kind %s; objects are sent when its CustomResourceDefinition is installed", name))
		return
	}
	kind.Status.Version, kind.Status.Resource, kind.Status.Subresources = served.Version, served.Resource, nil
	if served.HasStatus {
		kind.Status.Subresources = []string{SubresourceStatus}
	}
	switch errs := ValidateScope(kind, served.Namespaced); {
	case len(errs) > 0:
		set(metav1.ConditionFalse, v1alpha1.ReasonKindClusterScoped, errs.ToAggregate().Error())
	case len(missing) > 0:
		set(metav1.ConditionFalse, v1alpha1.ReasonRoleMissing, fmt.Sprintf(
			"Portico may not use kind %s; apply a ClusterRole with the label %s: \"true\" and %s", name, v1alpha1.AggregateToPorticoLabel, describe(missing)))
	default:
		set(metav1.ConditionTrue, v1alpha1.ReasonServed, fmt.Sprintf("objects of kind %s with the schedule label are sent", name))
	}
}

// describe returns rules as a manifest has them, on one line.
func describe(rules []rbacv1.PolicyRule) string {
	var out []string
	for _, rule := range rules {
		verbs, _ := json.Marshal(rule.Verbs)
		out = append(out, fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: %s}", rule.APIGroups[0], rule.Resources[0], verbs))
	}
	return "rules: [" + strings.Join(out, ", ") + "]"
}
