package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/targetselection"
)

// printDryRun prints where a drain would move each unit on a target, by the rules of
// the scheduler.
func (s *session) printDryRun(ctx context.Context, from string) error {
	units, err := s.unitsOn(ctx, from)
	if err != nil {
		return err
	}
	load, err := s.load(ctx)
	if err != nil {
		return err
	}
	candidates, err := s.candidates(ctx, load)
	if err != nil {
		return err
	}
	remaining := 0
	for _, u := range units {
		decision, err := s.selectTarget(ctx, u, from, candidates, load)
		if err != nil {
			return err
		}
		if decision.Target == "" {
			remaining++
			s.printf("%s would stay: %s (dry run)", u, decision.Message(s.namespace))
			continue
		}
		s.printf("%s would move to target %s (dry run)", u, decision.Target)
	}
	if remaining > 0 {
		return exitError{fmt.Errorf("%d of %d would stay on target %s", remaining, len(units), from), codeRemaining}
	}
	return nil
}

// load counts the resources on the clusters of all targets, as the scheduler does. A
// user who may not list all namespaces gets the counts of one.
func (s *session) load(ctx context.Context) (*targetselection.Load, error) {
	load, err := s.loadOf(ctx, "")
	if !apierrors.IsForbidden(err) {
		return load, err
	}
	s.printf("counting the resources of namespace %s only: %v", s.namespace, err)
	return s.loadOf(ctx, s.namespace)
}

// loadOf counts the resources of one namespace, or of all.
func (s *session) loadOf(ctx context.Context, namespace string) (*targetselection.Load, error) {
	var targets v1alpha1.KubernetesTargetList
	var apps v1alpha2.KubernetesApplicationList
	var resources v1alpha1.KubernetesApplicationResourceList
	for _, list := range []client.ObjectList{&targets, &apps, &resources} {
		if err := s.hub.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	load := targetselection.NewLoad()
	for i := range targets.Items {
		load.SetTarget(&targets.Items[i])
	}
	for i := range apps.Items {
		load.SetApplication(&apps.Items[i])
	}
	for i := range resources.Items {
		load.SetResource(&resources.Items[i])
	}
	return load, nil
}

func (s *session) candidates(ctx context.Context, load *targetselection.Load) (targetselection.Candidates, error) {
	var targets v1alpha1.KubernetesTargetList
	if err := s.hub.List(ctx, &targets, client.InNamespace(s.namespace)); err != nil {
		return targetselection.Candidates{}, err
	}
	resources, err := s.resources(ctx)
	return targetselection.Candidates{
		Targets: targets.Items, Resources: resources, Placed: load.PlacedByTarget(s.namespace),
		AllowDefaults: policies.AllowDefaults{PorticoNamespace: s.portico}, ClusterScoped: policies.ClusterScopedFrom(s.hub.RESTMapper()),
	}, err
}

// selectTarget selects the target that a unit would move to, and counts the unit
// there, so that the next unit is compared with it.
func (s *session) selectTarget(ctx context.Context, u unit, from string, candidates targetselection.Candidates, load *targetselection.Load) (targetselection.Decision, error) {
	object, target, _, err := s.getUnit(ctx, u)
	if apierrors.IsNotFound(err) || err == nil && target != from {
		return targetselection.Decision{Target: target}, nil // it moves already
	}
	if err != nil {
		return targetselection.Decision{}, err
	}
	var q targetselection.Query
	var scheduled targetselection.Unit
	switch o := object.(type) {
	case *v1alpha2.KubernetesApplication:
		scheduled = targetselection.ApplicationUnit(o.Namespace, o.Name)
		q, err = candidates.ForApplication(o, from)
	case *v1alpha1.KubernetesApplicationResource:
		scheduled = targetselection.ResourceUnit(o)
		q, err = candidates.ForResource(o, from)
	}
	if err != nil {
		return targetselection.Decision{}, fmt.Errorf("selecting a target for %s: %w", u, err)
	}
	return load.Choose(scheduled, q), nil
}
