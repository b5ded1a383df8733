package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// namespace is the namespace of pairs on the hub and on the target. Pairs that are
// created on the target directly are in another namespace.
const (
	namespace       = "bench"
	directNamespace = "bench-direct"
)

// system is a hub with Portico and a target. Both are complete clusters.
type system struct {
	*settings
	report *report

	hub, target     *cluster.Cluster
	onHub, onTarget kubernetes.Interface
	portico         *install.Manager
	profiles        string // the address of the manager's profiles
}

// measureSystem runs the measurements that need a hub and a target.
func measureSystem(ctx context.Context, s *settings, r *report) (err error) {
	b := &system{settings: s, report: r}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.start(ctx); err != nil {
		return err
	}
	// The first pair opens connections and fills caches. It does not count.
	if _, err := b.through(ctx, "warm", 1); err != nil {
		return err
	}
	if _, err := b.directly(ctx, "warm", 1); err != nil {
		return err
	}
	var through, direct []times
	for round := range b.turns() {
		prefix := fmt.Sprintf("round-%d", round+1)
		turns := []func() error{
			func() error {
				t, err := b.throughTurn(ctx, prefix, round)
				through = append(through, t)
				return err
			},
			func() error {
				if !s.wants(throughputSection) {
					return nil
				}
				t, err := b.directTurn(ctx, prefix, round)
				direct = append(direct, t)
				return err
			},
		}
		if err := turns[round%2](); err != nil {
			return err
		}
		if err := turns[1-round%2](); err != nil {
			return err
		}
	}
	if s.wants(throughputSection) {
		b.compare(through, direct)
		b.spent(through, direct)
	}
	return nil
}

// turns is the number of turns that create pairs: one, if only other measurements need
// the pairs.
func (b *system) turns() int {
	if b.wants(throughputSection) {
		return b.rounds
	}
	return 1
}

// throughTurn creates pairs on the hub, and runs the measurements that need them.
// Memory is measured in the first round only, because in later rounds the manager has
// had other pairs.
func (b *system) throughTurn(ctx context.Context, prefix string, round int) (times, error) {
	before, err := b.memoryBefore(ctx, round)
	if err != nil {
		return times{}, err
	}
	var t times
	since := time.Now()
	err = b.profiled(ctx, prefix, func() (err error) {
		t, err = b.through(ctx, prefix, b.pairs)
		return err
	})
	if err != nil {
		return t, err
	}
	if round == 0 {
		if err := b.reportRequests(since); err != nil {
			return t, err
		}
		for _, section := range []struct {
			name    string
			measure func() error
		}{
			{memorySection, func() error { return b.memory(ctx, before) }},
			{latencySection, func() error { return b.latency(ctx, prefix) }},
			{steadySection, func() error { return b.idle(ctx, steadySection, "") }},
			{dryRunSection, func() error { return b.dryRun(ctx) }},
			{applicationsSection, func() error { return b.applications(ctx) }},
		} {
			if !b.wants(section.name) {
				continue
			}
			if err := section.measure(); err != nil {
				return t, fmt.Errorf("measuring %s: %w", section.name, err)
			}
		}
	}
	if round == b.turns()-1 {
		return t, nil // no other measurement follows
	}
	return t, b.remove(ctx, b.onHub, namespace, prefix)
}

func (b *system) directTurn(ctx context.Context, prefix string, round int) (times, error) {
	t, err := b.directly(ctx, prefix, b.pairs)
	if err != nil || round == b.turns()-1 {
		return t, err
	}
	return t, b.remove(ctx, b.onTarget, directNamespace, prefix)
}

func (b *system) start(ctx context.Context) error {
	for _, c := range []struct {
		name, balancers string
		to              **cluster.Cluster
		client          *kubernetes.Interface
	}{
		{"hub", cluster.HubLoadBalancers, &b.hub, &b.onHub},
		{"target", cluster.TargetLoadBalancers, &b.target, &b.onTarget},
	} {
		err := step("starting "+c.name, nil, func() (err error) {
			// Each of kwok's nodes holds 500 Pods.
			*c.to, err = cluster.Start(ctx, cluster.Options{Name: c.name, LoadBalancerRange: c.balancers, Nodes: 2 + b.pairs/250,
				ExtraAPIServerArgs: []string{fmt.Sprintf("--profiling=%t", b.profile)}})
			if err != nil {
				return err
			}
			*c.client, err = connect(*c.to)
			return err
		})
		if err != nil {
			return err
		}
	}
	err := step("installing Portico on the hub", nil, func() (err error) {
		args, err := b.profiling()
		if err != nil {
			return err
		}
		b.portico, err = install.Portico(ctx, b.hub, install.Options{Args: args})
		return err
	})
	if err != nil {
		return err
	}
	if err := makeNamespace(ctx, b.onHub, namespace); err != nil {
		return err
	}
	if err := makeNamespace(ctx, b.onTarget, directNamespace); err != nil {
		return err
	}
	return step("publishing the target", nil, func() error {
		return install.Publish(ctx, b.hub, b.target, namespace, nil)
	})
}

func (b *system) stop() error {
	var errs []error
	if b.portico != nil {
		errs = append(errs, b.portico.Kill9())
	}
	for _, c := range []*cluster.Cluster{b.hub, b.target} {
		if c != nil {
			errs = append(errs, c.Shutdown())
		}
	}
	return errors.Join(errs...)
}

// remove deletes the pairs of a turn on the cluster on which they were created, and
// returns when their Pods are gone.
func (b *system) remove(ctx context.Context, from kubernetes.Interface, namespace, prefix string) error {
	return step("deleting the pairs", nil, func() error {
		background := metav1.DeletePropagationBackground
		names := called(prefix, b.pairs)
		err := spread(ctx, b.pairs, b.concurrency, func(i int) error {
			name := names[i]
			if err := from.AppsV1().Deployments(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
				return err
			}
			return from.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		})
		if err != nil {
			return err
		}
		return cluster.Poll(ctx, timeout, "the Pods to be gone", func(ctx context.Context) error {
			pods, err := b.onTarget.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=" + prefix})
			if err != nil {
				return err
			}
			if left := len(pods.Items); left > 0 {
				return fmt.Errorf("%d are left", left)
			}
			return nil
		})
	})
}

// timeout is the limit on every step of a run.
const timeout = 15 * time.Minute
