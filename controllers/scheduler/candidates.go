package scheduler

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/targetselection"
)

// listCandidates reads the targets of the namespace. They are not copied.
func (r *scheduler) listCandidates(ctx context.Context, s *scope) error {
	if err := r.synced.Wait(ctx); err != nil {
		return err
	}
	targets, err := r.targets(ctx, s.unit.GetNamespace())
	if err != nil {
		return err
	}
	s.query, err = s.unit.query(targetselection.Candidates{
		Targets: targets, Resources: s.members, Placed: r.load.PlacedByTarget(s.unit.GetNamespace()),
		AllowDefaults: r.allowDefaults, ClusterScoped: r.clusterScoped,
	}, s.from)
	return err
}

// choose selects a target. It reads the targets again, because a target may have been
// cordoned while policies were evaluated. A target that the policies did not see is no
// candidate.
func (r *scheduler) choose(ctx context.Context, s *scope) error {
	q := decisions.Restrict(s.query, s.review.Decision)
	seen := map[types.UID]bool{}
	for i := range q.Targets {
		seen[q.Targets[i].UID] = true
	}
	targets, err := r.targets(ctx, s.unit.GetNamespace())
	if err != nil {
		return err
	}
	q.Targets = slices.DeleteFunc(targets, func(t v1alpha1.KubernetesTarget) bool { return !seen[t.UID] })
	s.decision = r.load.Choose(s.unit.loadUnit(), q)
	return nil
}

func (r *scheduler) targets(ctx context.Context, namespace string) ([]v1alpha1.KubernetesTarget, error) {
	var list v1alpha1.KubernetesTargetList
	if err := r.hub.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing targets: %w", err)
	}
	return list.Items, nil
}
