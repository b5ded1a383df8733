package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// times are the times from the first request until all pairs are created, all are on
// the target, and all are available by their status.
type times struct {
	created, there, available time.Duration
	// cpu is the processor time of every process in the meantime.
	cpu cpu
}

// through creates pairs on the hub.
func (b *system) through(ctx context.Context, prefix string, pairs int) (times, error) {
	return b.race(ctx, fmt.Sprintf("%d pairs through Portico", pairs), prefix, pairs, b.onHub, namespace, namespace)
}

// directly creates pairs on the target, without Portico.
func (b *system) directly(ctx context.Context, prefix string, pairs int) (times, error) {
	return b.race(ctx, fmt.Sprintf("%d pairs directly", pairs), prefix, pairs, b.onTarget, directNamespace, directNamespace)
}

// race creates pairs. It watches their arrival on the target, and their availability on
// the cluster on which they were created.
func (b *system) race(ctx context.Context, what, prefix string, pairs int, on kubernetes.Interface, namespace, onTarget string) (times, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=" + prefix}
	var t times
	deployments, err := b.onTarget.AppsV1().Deployments(onTarget).Watch(ctx, ours)
	if err != nil {
		return t, err
	}
	defer deployments.Stop()
	services, err := b.onTarget.CoreV1().Services(onTarget).Watch(ctx, ours)
	if err != nil {
		return t, err
	}
	defer services.Stop()
	statuses, err := on.AppsV1().Deployments(namespace).Watch(ctx, ours)
	if err != nil {
		return t, err
	}
	defer statuses.Stop()

	counters := []*counter{
		{what: "Deployments are there", events: deployments, good: func(any) bool { return true }},
		{what: "Services are there", events: services, good: func(any) bool { return true }},
		{what: "are available", events: statuses, good: available},
	}
	progress := func() (out string) {
		for _, counter := range counters {
			out += fmt.Sprintf("%d %s, ", counter.seen.Load(), counter.what)
		}
		return out + fmt.Sprintf("of %d", pairs)
	}
	err = step(what, progress, func() error {
		started, before := time.Now(), b.cpu()
		results := make(chan error, len(counters))
		for _, counter := range counters {
			go func() { results <- counter.count(ctx, started, pairs) }()
		}
		if err := createPairs(ctx, on, namespace, prefix, pairs, on == b.onHub, b.concurrency); err != nil {
			return err
		}
		t.created = time.Since(started)
		for range counters {
			if err := <-results; err != nil {
				return err
			}
		}
		t.cpu = b.cpu().since(before)
		return nil
	})
	t.there, t.available = max(counters[0].took, counters[1].took), counters[2].took
	return t, err
}

// available tells whether a Deployment is available in its current generation.
func available(object any) bool {
	d, ok := object.(*appsv1.Deployment)
	if !ok || d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < ptr.Deref(d.Spec.Replicas, 1) {
		return false
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// counter counts the objects for which good returns true.
type counter struct {
	what   string
	events watch.Interface
	good   func(any) bool

	seen atomic.Int64
	took time.Duration
}

// count returns when enough objects are counted, or when the watch ends.
func (t *counter) count(ctx context.Context, started time.Time, want int) error {
	counted := map[string]bool{}
	for len(counted) < want {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d %s: %w", len(counted), want, t.what, context.Cause(ctx))
		case event, open := <-t.events.ResultChan():
			object, ok := event.Object.(metav1.Object)
			if !open || !ok {
				return fmt.Errorf("%d of %d %s: the watch ended: %v", len(counted), want, t.what, event.Object)
			}
			if event.Type != watch.Deleted && t.good(event.Object) {
				counted[object.GetName()] = true
				t.seen.Store(int64(len(counted)))
			}
		}
	}
	t.took = time.Since(started)
	return nil
}

// compare reports the rounds.
func (b *system) compare(through, direct []times) {
	ratio := func(what string, of func(times) time.Duration, aim *aim) {
		var fast, slow []float64
		for i := range direct {
			fast, slow = append(fast, of(direct[i]).Seconds()), append(slow, of(through[i]).Seconds())
		}
		b.report.ratio(throughputSection, what+", bare client's time ÷ Portico's", fast, slow, aim,
			fmt.Sprintf("%s s ÷ %s s", number(median(fast)), number(median(slow))))
	}
	ratio(fmt.Sprintf("create %d pairs", b.pairs), func(t times) time.Duration { return t.created }, nil)
	ratio("until the target has them", func(t times) time.Duration { return t.there }, atLeast(0.5))
	ratio("until their status says available", func(t times) time.Duration { return t.available }, atLeast(0.5))
}
