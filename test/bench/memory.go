package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is the memory of the manager by its own metrics, in KiB.
type usage struct {
	resident float64
	heap     float64 // in use by objects, including objects that are not swept yet
}

// memoryBefore returns the memory of the manager before the first round. It returns
// zero in later rounds.
func (b *system) memoryBefore(ctx context.Context, round int) (usage, error) {
	if round > 0 || !b.wants(memorySection) {
		return usage{}, nil
	}
	return b.settled(ctx)
}

// memory reports the memory of the manager for each pair, which is two resources.
func (b *system) memory(ctx context.Context, before usage) error {
	after, err := b.settled(ctx)
	if err != nil {
		return err
	}
	resources := 2 * float64(b.pairs)
	b.report.value(memorySection, "resident memory per KubernetesApplicationResource", (after.resident-before.resident)/resources, "KiB", atMost(15),
		fmt.Sprintf("(%s − %s) MiB / %s", number(after.resident/1024), number(before.resident/1024), number(resources)))
	b.report.value(memorySection, "heap per KubernetesApplicationResource", (after.heap-before.heap)/resources, "KiB", nil,
		fmt.Sprintf("(%s − %s) MiB / %s", number(after.heap/1024), number(before.heap/1024), number(resources)))
	return nil
}

// The times of watching the manager's memory: at least until Go's own collection after
// two idle minutes, and then until the memory is stable for a while.
const (
	collected = 150 * time.Second
	still     = 30 // in seconds
	enough    = 4 * time.Minute
)

// settled waits until the manager's memory no longer decreases. It does not start a
// garbage collection. Go does, after two idle minutes at the latest, and then returns
// memory step by step.
func (b *system) settled(ctx context.Context) (last usage, err error) {
	err = step("waiting for the manager's memory to settle", nil, func() error {
		started := time.Now()
		var seen []float64
		for {
			if last, err = b.usage(ctx); err != nil {
				return err
			}
			seen = append(seen, last.resident)
			if window := seen[max(0, len(seen)-still):]; time.Since(started) > collected {
				moved := slices.Max(window) - slices.Min(window)
				if moved < slices.Max(window)/100 || time.Since(started) > enough {
					return nil
				}
			}
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
		}
	})
	return last, err
}

// usage reads the manager's metrics.
func (b *system) usage(ctx context.Context) (usage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.portico.MetricsURL(), nil)
	if err != nil {
		return usage{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return usage{}, err
	}
	defer response.Body.Close()
	values := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				values[name] = v
			}
		}
	}
	u := usage{resident: values["process_resident_memory_bytes"] / 1024, heap: values["go_memstats_heap_alloc_bytes"] / 1024}
	if err := lines.Err(); err != nil {
		return u, err
	}
	if u.resident == 0 {
		return u, fmt.Errorf("%s does not tell how much memory is resident", b.portico.MetricsURL())
	}
	return u, nil
}
