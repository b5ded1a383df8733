package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// tick is a condition that nobody else writes, and the Deployment controller
// leaves alone. Its message numbers the sample.
const tick = "BenchTick"

// latency changes statuses on the target, one at a time, and sees when a watch
// there and a watch on the hub tell.
func (b *system) latency(ctx context.Context, prefix string) error {
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=" + prefix}
	onTarget, err := b.onTarget.AppsV1().Deployments(namespace).Watch(ctx, ours)
	if err != nil {
		return err
	}
	defer onTarget.Stop()
	onHub, err := b.onHub.AppsV1().Deployments(namespace).Watch(ctx, ours)
	if err != nil {
		return err
	}
	defer onHub.Stop()

	var target, hub []float64
	err = step(fmt.Sprintf("following %d status changes", b.samples), nil, func() error {
		names := called(prefix, b.pairs)
		for i := range b.samples {
			started := time.Now()
			if err := b.change(ctx, names[i%len(names)], i); err != nil {
				return err
			}
			seen := make(chan error, 2)
			var there, here time.Duration
			go func() { seen <- arrival(ctx, onTarget, i, started, &there) }()
			go func() { seen <- arrival(ctx, onHub, i, started, &here) }()
			for range cap(seen) {
				if err := <-seen; err != nil {
					return err
				}
			}
			target, hub = append(target, there.Seconds()*1000), append(hub, here.Seconds()*1000)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, q := range []float64{0.5, 0.99} {
		slow, fast := quantile(hub, q), quantile(target, q)
		b.report.ratio(latencySection, fmt.Sprintf("p%g of a status change on the target, seen on the hub ÷ seen there", 100*q),
			[]float64{slow}, []float64{fast}, nil, fmt.Sprintf("%s ms ÷ %s ms", number(slow), number(fast)))
	}
	return nil
}

func (b *system) change(ctx context.Context, name string, sample int) error {
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True","reason":"Bench","message":"%d","lastUpdateTime":%q,"lastTransitionTime":%q}]}}`,
		tick, sample, now, now)
	_, err := b.onTarget.AppsV1().Deployments(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// arrival notes how long after it was started a sample is seen.
func arrival(ctx context.Context, events watch.Interface, sample int, started time.Time, took *time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for sample %d: %w", sample, context.Cause(ctx))
		case event, open := <-events.ResultChan():
			d, ok := event.Object.(*appsv1.Deployment)
			if !open || !ok {
				return fmt.Errorf("waiting for sample %d: the watch ended: %v", sample, event.Object)
			}
			for _, c := range d.Status.Conditions {
				if c.Type == tick && c.Message == strconv.Itoa(sample) {
					*took = time.Since(started)
					return nil
				}
			}
		}
	}
}
