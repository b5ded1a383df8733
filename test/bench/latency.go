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

// tick is a condition that the Deployment controller does not change. Its message is
// the number of the sample.
const tick = "BenchTick"

// latency changes statuses on the target, one at a time, and waits for the events of a
// watch on the target and of a watch on the hub.
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
			if err := b.change(ctx, namespace, names[i%len(names)], i); err != nil {
				return err
			}
			seen := make(chan error, 2)
			var there, here float64
			follow := func(events watch.Interface, took *float64) {
				var err error
				*took, err = arrival(ctx, events, started, ticked(i))
				seen <- err
			}
			go follow(onTarget, &there)
			go follow(onHub, &here)
			for range cap(seen) {
				if err := <-seen; err != nil {
					return fmt.Errorf("sample %d: %w", i, err)
				}
			}
			target, hub = append(target, there), append(hub, here)
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

func (b *system) change(ctx context.Context, namespace, name string, sample int) error {
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True","reason":"Bench","message":"%d","lastUpdateTime":%q,"lastTransitionTime":%q}]}}`,
		tick, sample, now, now)
	_, err := b.onTarget.AppsV1().Deployments(namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// ticked tells whether a Deployment has the changed status of a sample.
func ticked(sample int) func(*appsv1.Deployment) bool {
	return func(d *appsv1.Deployment) bool {
		for _, c := range d.Status.Conditions {
			if c.Type == tick && c.Message == strconv.Itoa(sample) {
				return true
			}
		}
		return false
	}
}

// arrival returns the time in milliseconds from started to the first event for which
// arrived returns true.
func arrival[T any](ctx context.Context, events watch.Interface, started time.Time, arrived func(T) bool) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("waiting for it: %w", context.Cause(ctx))
		case event, open := <-events.ResultChan():
			object, ok := event.Object.(T)
			if !open || !ok {
				return 0, fmt.Errorf("waiting for it: the watch ended: %v", event.Object)
			}
			if arrived(object) {
				return time.Since(started).Seconds() * 1000, nil
			}
		}
	}
}
