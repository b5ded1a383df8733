package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/flaky"
)

const (
	// fewFlapping is the number of resources on the smaller target.
	fewFlapping = 50
	// probed is the interval and the timeout of probes. A target is away for three times
	// as long, and back for as long again. That is too long for a probe to miss it, and
	// too short for an outage.
	probed = time.Second
)

// measureFlapping counts Portico's writes on the hub when a target comes and goes.
// Their number must not depend on the number of resources on the target.
func measureFlapping(ctx context.Context, s *settings, r *report) (err error) {
	p, err := startPlanes(ctx, s, r, 1, fmt.Sprintf("--target-probe-interval=%s", probed), fmt.Sprintf("--target-timeout=%s", probed))
	defer func() { err = errors.Join(err, p.stop()) }()
	if err != nil {
		return err
	}
	user, err := p.targets[0].AddUser("portico", "system:masters")
	if err != nil {
		return err
	}
	server, err := address(p.targets[0].Cluster)
	if err != nil {
		return err
	}
	type one struct {
		namespace string
		resources int
		proxy     *flaky.Proxy
		writes    float64
	}
	few, many := &one{namespace: "bench-flapping-few", resources: min(fewFlapping, s.flapping)}, &one{namespace: "bench-flapping-many", resources: s.flapping}
	for _, each := range []*one{few, many} {
		if each.proxy, err = flaky.Before(server); err != nil {
			return err
		}
		defer each.proxy.Close()
		connection := connectionOf(user, "https://"+each.proxy.Address())
		err := p.publish(ctx, publication{namespace: each.namespace, name: publishedTarget, connection: connection})
		if err != nil {
			return err
		}
		if err := makeNamespace(ctx, p.onTarget, each.namespace); err != nil {
			return err
		}
		if err := p.fillNamespaces(ctx, each.resources, each.namespace); err != nil {
			return err
		}
	}
	for _, each := range []*one{few, many} {
		if each.writes, err = p.flap(ctx, each.namespace, each.proxy); err != nil {
			return err
		}
		r.value(flappingSection, fmt.Sprintf("writes on the hub for each of %d times that a target with %d resources came and went", s.flaps, each.resources),
			each.writes, "requests", nil, "")
	}
	r.value(flappingSection, fmt.Sprintf("how many more for %d resources than for %d", many.resources, few.resources),
		many.writes-few.writes, "requests", atMost(2), fmt.Sprintf("%s − %s", number(many.writes), number(few.writes)))
	return nil
}

// flap makes a target come and go, and returns the number of Portico's writes on the
// hub each time.
func (p *planes) flap(ctx context.Context, namespace string, proxy *flaky.Proxy) (writes float64, err error) {
	err = step(fmt.Sprintf("letting a target come and go %d times, %s", p.flaps, namespace), nil, func() error {
		if err := p.atRest(ctx); err != nil {
			return err
		}
		since := time.Now()
		for range p.flaps {
			for _, mode := range []flaky.Mode{flaky.Hanging, flaky.Through} {
				proxy.Turn(mode)
				if err := pause(ctx, 3*probed); err != nil {
					return err
				}
			}
		}
		if err := p.answers(ctx, namespace, publishedTarget); err != nil {
			return err
		}
		if err := p.atRest(ctx); err != nil {
			return err
		}
		counts, err := p.writesOnHub(since)
		if err != nil {
			return err
		}
		lines, total := tallied(counts)
		if total > 0 {
			p.report.explain(fmt.Sprintf("Writes on the hub while a target of %s came and went %d times", namespace, p.flaps), lines)
		}
		writes = float64(total) / float64(p.flaps)
		return nil
	})
	return writes, err
}

// writesOnHub counts Portico's writes on the hub by verb and resource.
func (p *planes) writesOnHub(since time.Time) (map[string]int, error) {
	events, err := p.system.hub.AuditEvents(since)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, event := range events {
		if cluster.IsWrite(event) && portico(event) {
			counts[describe(event)]++
		}
	}
	return counts, nil
}
