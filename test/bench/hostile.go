package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/hostile"
)

const (
	healthyNamespace = "bench-neighbours"
	// healthyTargets is the number of healthy targets.
	healthyTargets = 5
	// applies is the number of Deployments on each of them in a turn.
	applies = 12
	// tooMuch is the memory of the manager, in KiB, at which the benchmark ends it, to
	// protect the machine.
	tooMuch = 6 << 20
)

// beside is a system of healthy and hostile targets. The healthy targets are one API
// server, with a user for each.
type beside struct {
	*planes
	servers []*hostile.Server
}

// measureHostile measures healthy targets while hostile targets attack, and while they
// do not. Each round has new hostile targets, because Portico sends no requests to
// those of the previous round for a while.
func measureHostile(ctx context.Context, s *settings, r *report) (err error) {
	p, err := startPlanes(ctx, s, r, 1)
	defer func() { err = errors.Join(err, p.stop()) }()
	if err != nil {
		return err
	}
	b := &beside{planes: p}
	defer func() {
		for _, server := range b.servers {
			server.Close()
		}
	}()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	attacks := slices.Sorted(maps.Keys(hostile.Attacks()))
	var with, without []turn
	for round := range s.rounds {
		servers, err := b.publishHostile(ctx, fmt.Sprintf("bench-hostile-%d", round), attacks)
		if err != nil {
			return err
		}
		attack := func() {
			for i, server := range servers {
				server.Attack(hostile.Attacks()[attacks[i]])
			}
		}
		behave := func() {
			for _, server := range servers {
				server.Attack(hostile.Attack{})
			}
		}
		for _, attacked := range []bool{round%2 != 0, round%2 == 0} {
			if attacked {
				got, err := b.turn(ctx, fmt.Sprintf("attacked-%d", round), attack, behave)
				if err != nil {
					return err
				}
				with = append(with, got)
				continue
			}
			got, err := b.turn(ctx, fmt.Sprintf("behaving-%d", round), func() {}, func() {})
			if err != nil {
				return err
			}
			without = append(without, got)
		}
	}
	b.compareHostile(with, without, len(attacks))
	return nil
}

func (b *beside) prepare(ctx context.Context) error {
	var publications []publication
	for i := range healthyTargets {
		user, err := b.targets[0].AddUser("portico-"+targetName(i), "system:masters")
		if err != nil {
			return err
		}
		publications = append(publications, publication{namespace: healthyNamespace, name: targetName(i), connection: connectionOf(user, "")})
	}
	if err := b.publish(ctx, publications...); err != nil {
		return err
	}
	if err := makeNamespace(ctx, b.onTarget, healthyNamespace); err != nil {
		return err
	}
	// No controller creates it here. Without it an API server waits more than a second
	// before it answers the dry run of a Pod.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := b.onTarget.CoreV1().ServiceAccounts(healthyNamespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	// The first Deployment on a target starts its watches.
	_, err := b.measure(ctx, "warm", 1)
	return err
}

// publishHostile publishes a target for each attack. They are honest at first, so that
// each has a resource and a watch.
func (b *beside) publishHostile(ctx context.Context, namespace string, attacks []string) (servers []*hostile.Server, err error) {
	var publications []publication
	for i := range attacks {
		server := hostile.Start()
		b.servers, servers = append(b.servers, server), append(servers, server)
		publications = append(publications, publication{namespace: namespace, name: targetName(i), connection: server.Secret(),
			spec: v1alpha1.KubernetesTargetSpec{DryRun: v1alpha1.DryRunNever}})
	}
	if err := b.publish(ctx, publications...); err != nil {
		return nil, err
	}
	for _, each := range publications {
		r, err := resourceFor(configuration(namespace, "on-"+each.name), each.name)
		if err != nil {
			return nil, err
		}
		if err := b.hub.Create(ctx, r); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// turn has the times of healthy targets, and the manager's memory in KiB: the greatest
// resident memory, and the memory in use at the end.
type turn struct {
	samples
	resident, left float64
}

// turn measures healthy targets between begin and end.
func (b *beside) turn(ctx context.Context, what string, begin, end func()) (got turn, err error) {
	err = step("measuring neighbours, "+what, nil, func() (err error) {
		if _, err := b.inUse(ctx); err != nil {
			return err
		}
		watched, cancel := context.WithCancelCause(ctx)
		most := make(chan float64)
		go func() { most <- b.mostResident(watched, cancel) }()
		begin()
		got.samples, err = b.measure(watched, what, applies)
		end()
		if cause := context.Cause(watched); cause != nil {
			err = cause
		}
		cancel(nil)
		got.resident = <-most
		if err != nil {
			return err
		}
		got.left, err = b.inUse(ctx)
		return err
	})
	return got, err
}

// inUse returns the manager's heap in KiB after a garbage collection. It does not wait
// until the manager is idle, because the manager probes all targets all the time.
func (b *beside) inUse(ctx context.Context) (float64, error) {
	if err := pause(ctx, 5*time.Second); err != nil {
		return 0, err
	}
	for range 2 { // the second collection frees objects with finalizers
		if err := b.collect(ctx); err != nil {
			return 0, err
		}
	}
	now, err := b.usage(ctx)
	return now.heap, err
}

// mostResident reads the manager's memory until ctx ends. It ends the manager when the
// memory exceeds tooMuch.
func (b *beside) mostResident(ctx context.Context, end context.CancelCauseFunc) (most float64) {
	for {
		if now, err := b.usage(ctx); err == nil { // a busy manager may not answer
			most = max(most, now.resident)
		}
		if most > tooMuch {
			end(errors.Join(fmt.Errorf("the manager takes %s MiB", number(most/1024)), b.portico.Kill9()))
		}
		if pause(ctx, 500*time.Millisecond) != nil {
			return most
		}
	}
}

// measure deploys to every healthy target, waits for the statuses, and cleans up.
func (b *beside) measure(ctx context.Context, group string, times int) (got samples, err error) {
	there, err := b.onTarget.AppsV1().Deployments(healthyNamespace).Watch(ctx, ofGroup(group))
	if err != nil {
		return got, err
	}
	defer there.Stop()
	here, err := b.hub.Watch(ctx, &v1alpha1.KubernetesApplicationResourceList{}, client.InNamespace(healthyNamespace))
	if err != nil {
		return got, err
	}
	defer here.Stop()
	var made []*v1alpha1.KubernetesApplicationResource
	for i := range times * healthyTargets {
		d := deployment(healthyNamespace, group, fmt.Sprintf("%s-%d", group, i), false)
		d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
		r, err := resourceFor(d, "")
		if err != nil {
			return got, err
		}
		r.Spec.TargetSelector = &metav1.LabelSelector{MatchLabels: map[string]string{named: targetName(i % healthyTargets)}}
		started := time.Now()
		if err := b.hub.Create(ctx, r); err != nil {
			return got, err
		}
		made = append(made, r)
		took, err := arrival(ctx, there, started, func(found *appsv1.Deployment) bool { return found.Name == d.Name })
		if err != nil {
			return got, fmt.Errorf("%s: %w", d.Name, err)
		}
		got.applied = append(got.applied, took)
	}
	for sample := range changes * len(made) {
		name := made[sample%len(made)].Name
		started := time.Now()
		if err := b.change(ctx, healthyNamespace, name, sample); err != nil {
			return got, err
		}
		took, err := arrival(ctx, here, started, func(r *v1alpha1.KubernetesApplicationResource) bool { return r.Name == name && remoteTicked(r, sample) })
		if err != nil {
			return got, fmt.Errorf("sample %d: %w", sample, err)
		}
		got.reported = append(got.reported, took)
	}
	for _, r := range made {
		if err := b.hub.Delete(ctx, r); err != nil {
			return got, err
		}
	}
	return got, cluster.Poll(ctx, timeout, "the Deployments to be gone", func(ctx context.Context) error {
		left, err := b.onTarget.AppsV1().Deployments(healthyNamespace).List(ctx, ofGroup(group))
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d are left", len(left.Items))
		}
		return err
	})
}

// remoteTicked tells whether a resource has the changed status of a sample.
func remoteTicked(r *v1alpha1.KubernetesApplicationResource, sample int) bool {
	var d appsv1.Deployment
	return r.Status.Remote != nil && json.Unmarshal(r.Status.Remote.Raw, &d.Status) == nil && ticked(sample)(&d)
}

func (b *beside) compareHostile(with, without []turn, hostiles int) {
	against := fmt.Sprintf("while %d others attack ÷ while those behave", hostiles)
	series := func(of func(turn) float64) (slow, fast []float64) {
		for i := range without {
			slow, fast = append(slow, of(with[i])), append(fast, of(without[i]))
		}
		return slow, fast
	}
	for _, row := range []struct {
		what string
		of   func(turn) []float64
	}{
		{"a Deployment is on its target", func(t turn) []float64 { return t.applied }},
		{"a status change is on the hub", func(t turn) []float64 { return t.reported }},
	} {
		for _, q := range []float64{0.5, 0.9} {
			slow, fast := series(func(t turn) float64 { return quantile(row.of(t), q) })
			b.report.ratio(hostileSection, fmt.Sprintf("p%g until %s, of %d healthy targets %s", 100*q, row.what, healthyTargets, against),
				slow, fast, map[float64]*aim{0.5: atMost(1.2)}[q], fmt.Sprintf("%s ms ÷ %s ms", number(median(slow)), number(median(fast))))
		}
	}
	for _, row := range []struct {
		what string
		of   func(turn) float64
	}{
		{"most resident memory", func(t turn) float64 { return t.resident }},
		{"heap when all was over", func(t turn) float64 { return t.left }},
	} {
		much, little := series(row.of)
		b.report.ratio(hostileSection, row.what+", "+against, much, little, atMost(1.1), fmt.Sprintf("%s MiB ÷ %s MiB", number(median(much)/1024), number(median(little)/1024)))
	}
}
