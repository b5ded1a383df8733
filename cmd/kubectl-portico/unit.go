package main

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// fieldManager is the field manager of this plugin.
const fieldManager = "kubectl-portico"

// unit moves as a whole: an application, or a resource without one.
type unit struct {
	application bool
	name        string
}

func (u unit) String() string {
	if u.application {
		return "application " + u.name
	}
	return "resource " + u.name
}

func isOnTarget(resource *v1alpha1.KubernetesApplicationResource, target string) bool {
	return slices.Contains(policies.TargetsOf(resource), target)
}

// unitOf returns the unit of a resource.
func unitOf(resource *v1alpha1.KubernetesApplicationResource) unit {
	if name, member := resource.Labels[v1alpha1.ApplicationLabel]; member {
		return unit{application: true, name: name}
	}
	return unit{name: resource.Name}
}

// unitsOn returns the units that are scheduled to a target, or have resources on it.
func (s *session) unitsOn(ctx context.Context, target string) ([]unit, error) {
	var apps v1alpha2.KubernetesApplicationList
	if err := s.hub.List(ctx, &apps, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	var out []unit
	for _, app := range apps.Items {
		if app.Spec.TargetRef != nil && app.Spec.TargetRef.Name == target {
			out = append(out, unit{application: true, name: app.Name})
		}
	}
	resources, err := s.resources(ctx)
	if err != nil {
		return nil, err
	}
	for i := range resources {
		// A shared dependency leaves a target after the last unit that needs it.
		if isOnTarget(&resources[i], target) && !policies.IsSharedDependency(&resources[i]) {
			out = append(out, unitOf(&resources[i]))
		}
	}
	slices.SortFunc(out, func(a, b unit) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out), nil
}

// leavesDependency tells whether a shared dependency is being deleted from a target.
func (s *session) leavesDependency(ctx context.Context, target string) (bool, error) {
	resources, err := s.resources(ctx)
	return slices.ContainsFunc(resources, func(r v1alpha1.KubernetesApplicationResource) bool {
		return policies.IsSharedDependency(&r) && r.DeletionTimestamp != nil && isOnTarget(&r, target)
	}), err
}

func (s *session) resources(ctx context.Context) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	err := s.hub.List(ctx, &list, client.InNamespace(s.namespace))
	return list.Items, err
}

// members returns the resources of a unit.
func (s *session) members(ctx context.Context, u unit) ([]v1alpha1.KubernetesApplicationResource, error) {
	all, err := s.resources(ctx)
	return slices.DeleteFunc(all, func(r v1alpha1.KubernetesApplicationResource) bool { return unitOf(&r) != u }), err
}

// getUnit reads the object of a unit, its target and its conditions.
func (s *session) getUnit(ctx context.Context, u unit) (client.Object, string, []metav1.Condition, error) {
	key := client.ObjectKey{Namespace: s.namespace, Name: u.name}
	nameOf := func(ref *v1alpha1.TargetReference) string {
		if ref == nil {
			return ""
		}
		return ref.Name
	}
	if u.application {
		app := &v1alpha2.KubernetesApplication{}
		err := s.hub.Get(ctx, key, app)
		return app, nameOf(app.Spec.TargetRef), app.Status.Conditions, err
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	err := s.hub.Get(ctx, key, resource)
	return resource, nameOf(resource.Spec.TargetRef), resource.Status.Conditions, err
}

// requestMove asks the scheduler to move a unit off a target, if the unit is on it.
func (s *session) requestMove(ctx context.Context, u unit, from string) error {
	object, target, _, err := s.getUnit(ctx, u)
	if err != nil || target != from {
		return client.IgnoreNotFound(err)
	}
	return s.annotate(ctx, object, func(annotations map[string]string) { annotations[v1alpha1.MoveFromAnnotation] = from })
}

// cancelMove takes back a request that the scheduler has not carried out.
func (s *session) cancelMove(ctx context.Context, u unit, from string) error {
	object, _, _, err := s.getUnit(ctx, u)
	if err != nil || object.GetAnnotations()[v1alpha1.MoveFromAnnotation] != from {
		return client.IgnoreNotFound(err)
	}
	return s.annotate(ctx, object, func(annotations map[string]string) { delete(annotations, v1alpha1.MoveFromAnnotation) })
}

// annotate changes the annotations of an object that still exists.
func (s *session) annotate(ctx context.Context, object client.Object, change func(map[string]string)) error {
	before := object.DeepCopyObject().(client.Object)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	change(annotations)
	object.SetAnnotations(annotations)
	return client.IgnoreNotFound(s.hub.Patch(ctx, object, client.MergeFrom(before), client.FieldOwner(fieldManager)))
}

func (s *session) setUnschedulable(ctx context.Context, target *v1alpha1.KubernetesTarget, on bool) error {
	state := map[bool]string{true: "cordoned", false: "uncordoned"}[on]
	if target.Spec.Unschedulable == on {
		s.printf("target %s is %s already", target.Name, state)
		return nil
	}
	before := target.DeepCopy()
	target.Spec.Unschedulable = on
	if err := s.hub.Patch(ctx, target, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	s.printf("target %s %s", target.Name, state)
	return nil
}
