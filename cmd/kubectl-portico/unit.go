package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/placement"
)

// manager is the field manager of this plugin.
const manager = "kubectl-portico"

// unit is what moves as a whole: an application, or a resource of its own.
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

func on(resource *v1alpha1.KubernetesApplicationResource, target string) bool {
	return slices.Contains(policies.TargetsOf(resource), target)
}

// unitOf is what a resource moves with.
func unitOf(resource *v1alpha1.KubernetesApplicationResource) unit {
	if name, member := resource.Labels[v1alpha1.ApplicationLabel]; member {
		return unit{application: true, name: name}
	}
	return unit{name: resource.Name}
}

// unitsOn are all that have something on a target, or are scheduled to it.
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
		if on(&resources[i], target) {
			out = append(out, unitOf(&resources[i]))
		}
	}
	slices.SortFunc(out, func(a, b unit) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out), nil
}

func (s *session) resources(ctx context.Context) ([]v1alpha1.KubernetesApplicationResource, error) {
	var list v1alpha1.KubernetesApplicationResourceList
	err := s.hub.List(ctx, &list, client.InNamespace(s.namespace))
	return list.Items, err
}

// members are a unit's resources.
func (s *session) members(ctx context.Context, u unit) ([]v1alpha1.KubernetesApplicationResource, error) {
	all, err := s.resources(ctx)
	return slices.DeleteFunc(all, func(r v1alpha1.KubernetesApplicationResource) bool { return unitOf(&r) != u }), err
}

// read returns a unit's object, where it is, and its conditions.
func (s *session) read(ctx context.Context, u unit) (client.Object, string, []metav1.Condition, error) {
	key := client.ObjectKey{Namespace: s.namespace, Name: u.name}
	name := func(ref *v1alpha1.TargetReference) string {
		if ref == nil {
			return ""
		}
		return ref.Name
	}
	if u.application {
		app := &v1alpha2.KubernetesApplication{}
		err := s.hub.Get(ctx, key, app)
		return app, name(app.Spec.TargetRef), app.Status.Conditions, err
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	err := s.hub.Get(ctx, key, resource)
	return resource, name(resource.Spec.TargetRef), resource.Status.Conditions, err
}

// ask asks the scheduler to move a unit off a target, if that is where it is.
func (s *session) ask(ctx context.Context, u unit, from string) error {
	object, at, _, err := s.read(ctx, u)
	if err != nil || at != from {
		return client.IgnoreNotFound(err)
	}
	return s.annotate(ctx, object, func(annotations map[string]string) { annotations[v1alpha1.MoveFromAnnotation] = from })
}

// takeBack takes the request back that the scheduler has not met.
func (s *session) takeBack(ctx context.Context, u unit, from string) error {
	object, _, _, err := s.read(ctx, u)
	if err != nil || object.GetAnnotations()[v1alpha1.MoveFromAnnotation] != from {
		return client.IgnoreNotFound(err)
	}
	return s.annotate(ctx, object, func(annotations map[string]string) { delete(annotations, v1alpha1.MoveFromAnnotation) })
}

// annotate changes the annotations of what is still there.
func (s *session) annotate(ctx context.Context, object client.Object, change func(map[string]string)) error {
	before := object.DeepCopyObject().(client.Object)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	change(annotations)
	object.SetAnnotations(annotations)
	return client.IgnoreNotFound(s.hub.Patch(ctx, object, client.MergeFrom(before), client.FieldOwner(manager)))
}

func (s *session) setUnschedulable(ctx context.Context, target *v1alpha1.KubernetesTarget, on bool) error {
	words := map[bool]string{true: "cordoned", false: "uncordoned"}
	if target.Spec.Unschedulable == on {
		s.say("target %s is %s already", target.Name, words[on])
		return nil
	}
	before := target.DeepCopy()
	target.Spec.Unschedulable = on
	if err := s.hub.Patch(ctx, target, client.MergeFrom(before), client.FieldOwner(manager)); err != nil {
		return err
	}
	s.say("target %s %s", target.Name, words[on])
	return nil
}

// decide asks the scheduler's rules where a unit would go.
func (s *session) decide(ctx context.Context, u unit, from string) (placement.Decision, error) {
	object, at, _, err := s.read(ctx, u)
	if apierrors.IsNotFound(err) || err == nil && at != from {
		return placement.Decision{Target: at}, nil // it is on its way already
	}
	if err != nil {
		return placement.Decision{}, err
	}
	var targets v1alpha1.KubernetesTargetList
	if err := s.hub.List(ctx, &targets, client.InNamespace(s.namespace)); err != nil {
		return placement.Decision{}, err
	}
	resources, err := s.resources(ctx)
	if err != nil {
		return placement.Decision{}, err
	}
	around := placement.Surroundings{
		Targets: targets.Items, Resources: resources,
		Frontier: policies.Frontier{Portico: s.portico}, Scope: policies.ScopeFrom(s.hub.RESTMapper()),
	}
	var q placement.Question
	switch o := object.(type) {
	case *v1alpha2.KubernetesApplication:
		q, err = around.Application(o, from)
	case *v1alpha1.KubernetesApplicationResource:
		q, err = around.Resource(o, from)
	}
	if err != nil {
		return placement.Decision{}, fmt.Errorf("placing %s: %w", u, err)
	}
	return placement.Decide(q), nil
}
