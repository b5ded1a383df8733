package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Namespaces on the hub, and the target that is published to each.
const (
	smallNamespace  = "bench-small"
	largeNamespace  = "bench-large"
	publishedTarget = "target"
	// fillGroup is the group of the resources that fill a namespace.
	fillGroup = "filler"
)

// measureNamespaces measures the time of one more resource in a namespace with many
// resources. It also measures the memory for the same number of resources in many
// namespaces, to each of which the same cluster is published.
func measureNamespaces(ctx context.Context, s *settings, r *report) error {
	one, err := measureOneNamespace(ctx, s, r)
	if err != nil || !s.wants(namespacesSection) {
		return err
	}
	return measureManyNamespaces(ctx, s, r, one)
}

// crowd is a number of resources, and the memory of the manager with them.
type crowd struct {
	usage
	resources int
}

// measureOneNamespace fills one namespace.
func measureOneNamespace(ctx context.Context, s *settings, r *report) (taken crowd, err error) {
	p, err := startPlanes(ctx, s, r, 1)
	defer func() { err = errors.Join(err, p.stop()) }()
	if err != nil {
		return taken, err
	}
	user, err := p.targets[0].AddUser("portico", "system:masters")
	if err != nil {
		return taken, err
	}
	if err := p.publish(ctx, publication{namespace: largeNamespace, name: publishedTarget, connection: connectionOf(user, "")}); err != nil {
		return taken, err
	}
	if !s.wants(placementSection) {
		if err := p.fillNamespaces(ctx, s.large, largeNamespace); err != nil {
			return taken, err
		}
		return p.restarted(ctx)
	}
	if err := p.publish(ctx, publication{namespace: smallNamespace, name: publishedTarget, connection: connectionOf(user, "")}); err != nil {
		return taken, err
	}
	if err := p.fillNamespaces(ctx, s.small, smallNamespace); err != nil {
		return taken, err
	}
	if _, err := p.oneMore(ctx, "warm", 5, smallNamespace); err != nil {
		return taken, err
	}
	alone, err := p.oneMore(ctx, "alone", s.placements(), smallNamespace)
	if err != nil {
		return taken, err
	}
	if err := p.fillNamespaces(ctx, s.large, largeNamespace); err != nil {
		return taken, err
	}
	if err := p.atRest(ctx); err != nil {
		return taken, err
	}
	if _, err := p.oneMore(ctx, "warm", 5, largeNamespace); err != nil {
		return taken, err
	}
	beside, err := p.oneMore(ctx, "beside", s.placements(), smallNamespace, largeNamespace)
	if err != nil {
		return taken, err
	}
	comparePlacements(r, s, alone[smallNamespace], beside[smallNamespace], beside[largeNamespace])
	if !s.wants(namespacesSection) {
		return taken, nil
	}
	return p.restarted(ctx)
}

// placements is the number of further resources of each kind.
func (s *settings) placements() int { return min(s.samples, 50) }

// fillNamespaces fills namespaces with n resources altogether. Each resource has a
// target, and there is no dry run, because neither is part of this measurement.
func (p *planes) fillNamespaces(ctx context.Context, n int, namespaces ...string) error {
	for _, namespace := range namespaces {
		if err := p.patchTarget(ctx, namespace, publishedTarget, fmt.Sprintf(`{"dryRun":%q}`, v1alpha1.DryRunNever)); err != nil {
			return err
		}
	}
	if err := p.fill(ctx, fillGroup, n/len(namespaces), publishedTarget, namespaces...); err != nil {
		return err
	}
	for _, namespace := range namespaces {
		if err := p.patchTarget(ctx, namespace, publishedTarget, fmt.Sprintf(`{"dryRun":%q}`, v1alpha1.DryRunAlways)); err != nil {
			return err
		}
	}
	return nil
}

// restarted returns the memory of a manager that starts and changes nothing. So the
// temporary memory of the manager before does not count.
func (p *planes) restarted(ctx context.Context) (c crowd, err error) {
	var all v1alpha1.KubernetesApplicationResourceList
	if err := p.hub.List(ctx, &all, client.Limit(1)); err != nil {
		return c, err
	}
	c.resources = len(all.Items) + int(ptr.Deref(all.RemainingItemCount, 0))
	err = step("restarting the manager", nil, func() error { return p.portico.Restart(ctx) })
	if err != nil {
		return c, err
	}
	c.usage, err = p.footprint(ctx)
	return c, err
}

// placed are the times in milliseconds from the creation of an object to its arrival on
// the target, for resources that a user wrote, and for native objects.
type placed struct{ resources, natives []float64 }

// oneMore creates n more resources of each kind in each namespace, one at a time,
// in turns.
func (p *planes) oneMore(ctx context.Context, group string, n int, namespaces ...string) (map[string]*placed, error) {
	took := map[string]*placed{}
	for _, namespace := range namespaces {
		took[namespace] = &placed{}
	}
	names := called(group, n)
	err := step(fmt.Sprintf("placing %d more, %s", n, group), nil, func() error {
		for _, name := range names {
			for _, namespace := range namespaces {
				one := configuration(namespace, name)
				r, err := resourceFor(one, "")
				if err != nil {
					return err
				}
				ms, err := p.arrives(ctx, one, func() error { return p.hub.Create(ctx, r) })
				if err != nil {
					return err
				}
				took[namespace].resources = append(took[namespace].resources, ms)

				native := configuration(namespace, "native-"+name)
				native.Labels = scheduled(native.Labels, true)
				ms, err = p.arrives(ctx, native, func() error {
					_, err := p.onHub.CoreV1().ConfigMaps(namespace).Create(ctx, native, metav1.CreateOptions{})
					return err
				})
				if err != nil {
					return err
				}
				took[namespace].natives = append(took[namespace].natives, ms)
			}
		}
		return nil
	})
	return took, err
}

// arrives returns the time in milliseconds from the creation of a ConfigMap to its
// arrival on the first target.
func (p *planes) arrives(ctx context.Context, object *corev1.ConfigMap, create func() error) (float64, error) {
	events, err := p.onTarget.CoreV1().ConfigMaps(object.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + object.Name})
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	started := time.Now()
	if err := create(); err != nil {
		return 0, err
	}
	took, err := arrival(ctx, events, started, func(*corev1.ConfigMap) bool { return true })
	if err != nil {
		return 0, fmt.Errorf("ConfigMap %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return took, nil
}

func comparePlacements(r *report, s *settings, alone, small, large *placed) {
	for _, row := range []struct {
		what string
		of   func(*placed) []float64
	}{
		{"one more resource", func(p *placed) []float64 { return p.resources }},
		{"one more native object", func(p *placed) []float64 { return p.natives }},
	} {
		compare := func(against string, fast, slow []float64, aim *aim) {
			for _, q := range []float64{0.5, 0.9} {
				f, sl := quantile(fast, q), quantile(slow, q)
				r.ratio(placementSection, fmt.Sprintf("p%g until %s is on the target, in a namespace of %d ÷ %s", 100*q, row.what, s.large, against),
					[]float64{sl}, []float64{f}, aim, fmt.Sprintf("%s ms ÷ %s ms", number(sl), number(f)))
				aim = nil // only the median has an aim
			}
		}
		compare(fmt.Sprintf("in one of %d beside it", s.small), row.of(small), row.of(large), atMost(1.5))
		compare(fmt.Sprintf("in one of %d before there was the other", s.small), row.of(alone), row.of(large), nil)
	}
}

// measureManyNamespaces measures the memory of the manager with the same number of
// resources in many namespaces as in one.
func measureManyNamespaces(ctx context.Context, s *settings, r *report, one crowd) (err error) {
	p, err := startPlanes(ctx, s, r, 1)
	defer func() { err = errors.Join(err, p.stop()) }()
	if err != nil {
		return err
	}
	user, err := p.targets[0].AddUser("portico", "system:masters")
	if err != nil {
		return err
	}
	namespaces := called("bench", s.namespaces)
	for _, namespace := range namespaces {
		if err := makeNamespace(ctx, p.onTarget, namespace); err != nil {
			return err
		}
	}
	publications := make([]publication, len(namespaces))
	for i, namespace := range namespaces {
		publications[i] = publication{namespace: namespace, name: publishedTarget, connection: connectionOf(user, "")}
	}
	if err := p.publish(ctx, publications...); err != nil {
		return err
	}
	if err := p.fillNamespaces(ctx, one.resources, namespaces...); err != nil {
		return err
	}
	same, err := p.restarted(ctx)
	if err != nil {
		return err
	}
	compareMemory(r, s, "the same credential", same, one)
	for i := range publications {
		user, err := p.targets[0].AddUser("portico-"+namespaces[i], "system:masters")
		if err != nil {
			return err
		}
		publications[i].connection = connectionOf(user, "")
		if err := p.hub.Update(ctx, publications[i].secret()); err != nil {
			return err
		}
	}
	own, err := p.restarted(ctx)
	if err != nil {
		return err
	}
	compareMemory(r, s, "credentials of their own", own, one)
	return nil
}

func compareMemory(r *report, s *settings, with string, many, one crowd) {
	what := fmt.Sprintf("with %d resources of one cluster, %d namespaces with %s ÷ one namespace", many.resources, s.namespaces, with)
	r.ratio(namespacesSection, "resident memory "+what, []float64{many.resident}, []float64{one.resident}, atMost(1.3),
		fmt.Sprintf("%s MiB ÷ %s MiB", number(many.resident/1024), number(one.resident/1024)))
	r.ratio(namespacesSection, "heap "+what, []float64{many.heap}, []float64{one.heap}, nil,
		fmt.Sprintf("%s MiB ÷ %s MiB", number(many.heap/1024), number(one.heap/1024)))
}
