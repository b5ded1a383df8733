package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

const (
	// calm is the time in which the clusters' own controllers finish.
	calm = 15 * time.Second
	// watched is the time in which there should be no requests.
	watched = 30 * time.Second
)

// idle counts the requests to the API servers while no user acts. with is the part of a
// row's title about the existing objects.
func (b *system) idle(ctx context.Context, section, with string) error {
	var since time.Time
	err := step(fmt.Sprintf("doing nothing for %s", calm+watched), nil, func() error {
		if err := pause(ctx, calm); err != nil {
			return err
		}
		since = time.Now()
		return pause(ctx, watched)
	})
	if err != nil {
		return err
	}
	for _, c := range []*cluster.Cluster{b.hub, b.target} {
		events, err := c.AuditEvents(since)
		if err != nil {
			return err
		}
		writes, discoveries := map[string]int{}, map[string]int{}
		for _, event := range events {
			switch {
			case cluster.IsWrite(event):
				writes[describe(event)]++
			case discovery(event) && portico(event):
				discoveries[describe(event)]++
			}
		}
		b.reportCount(section, fmt.Sprintf("writes of all clients on the %s in %s%s", c.Name(), watched, with), writes)
		b.reportCount(section, fmt.Sprintf("discovery calls on the %s in %s, by Portico%s", c.Name(), watched, with), discoveries)
	}
	return nil
}

// reportRequests reports the requests to the hub for a pair, by frequency.
func (b *system) reportRequests(since time.Time) error {
	events, err := b.hub.AuditEvents(since)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, event := range events {
		status := int32(0)
		if event.ResponseStatus != nil {
			status = event.ResponseStatus.Code
		}
		counts[fmt.Sprintf("%s: %d", describe(event), status)]++
	}
	requests := slices.SortedFunc(maps.Keys(counts), func(x, y string) int { return counts[y] - counts[x] })
	var lines []string
	for _, request := range requests {
		if each := float64(counts[request]) / float64(b.pairs); each >= 0.02 {
			lines = append(lines, fmt.Sprintf("%6.2f %s", each, request))
		}
	}
	b.report.explain("Requests to the hub for a pair", lines)
	return nil
}

// reportCount reports a count that should be 0, with its items.
func (b *system) reportCount(section, what string, counts map[string]int) {
	lines, total := tallied(counts)
	b.report.value(section, what, float64(total), "requests", atMost(0), "")
	if total > 0 {
		b.report.explain(what, lines)
	}
}

// tallied returns the items of a count as lines, and their sum.
func tallied(counts map[string]int) (lines []string, total int) {
	for _, request := range slices.Sorted(maps.Keys(counts)) {
		total += counts[request]
		lines = append(lines, fmt.Sprintf("%6d %s", counts[request], request))
	}
	return lines, total
}

func describe(event auditv1.Event) string {
	path, _, _ := strings.Cut(event.RequestURI, "?")
	if ref := event.ObjectRef; ref != nil {
		path = strings.Trim(ref.Resource+"/"+ref.Subresource, "/")
	}
	return event.Verb + " " + path + " by " + event.User.Username
}

// discovery tells whether an event is a discovery request.
func discovery(event auditv1.Event) bool {
	return event.ObjectRef == nil && (strings.HasPrefix(event.RequestURI, "/api") || strings.HasPrefix(event.RequestURI, "/openapi"))
}

// portico tells whether Portico made a request. On the hub Portico has a service
// account, and on a target a user name.
func portico(event auditv1.Event) bool {
	return strings.HasPrefix(event.User.Username, "system:serviceaccount:"+install.Namespace+":") ||
		strings.HasPrefix(event.UserAgent, v1alpha1.PropagationManager)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
