package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/flaky"
)

const (
	burstNamespace = "bench-burst"
	// equals is the number of equal targets of a burst.
	equals = 5
)

// measureBurst creates applications at once, and counts the applications on each of
// several equal targets. The targets are one API server with an address for each.
func measureBurst(ctx context.Context, s *settings, r *report) (err error) {
	p, err := startPlanes(ctx, s, r, 1)
	defer func() { err = errors.Join(err, p.stop()) }()
	if err != nil {
		return err
	}
	server, err := address(p.targets[0].Cluster)
	if err != nil {
		return err
	}
	user, err := p.targets[0].AddUser("portico", "system:masters")
	if err != nil {
		return err
	}
	if err := makeNamespace(ctx, p.onTarget, burstNamespace); err != nil {
		return err
	}
	var publications []publication
	for i := range equals {
		proxy, err := flaky.Before(server)
		if err != nil {
			return err
		}
		defer proxy.Close()
		publications = append(publications, publication{namespace: burstNamespace, name: targetName(i), connection: connectionOf(user, "https://"+proxy.Address())})
	}
	if err := p.publish(ctx, publications...); err != nil {
		return err
	}
	var loads map[string]int
	started := time.Now()
	var all time.Duration
	err = step(fmt.Sprintf("creating %d applications", s.burst), func() string { return fmt.Sprint(loads) }, func() error {
		names := called("application", s.burst)
		err := spread(ctx, s.burst, s.concurrency, func(i int) error {
			raw, err := json.Marshal(configuration(burstNamespace, names[i]))
			if err != nil {
				return err
			}
			return p.hub.Create(ctx, &v1alpha2.KubernetesApplication{
				ObjectMeta: metav1.ObjectMeta{Namespace: burstNamespace, Name: names[i]},
				Spec: v1alpha2.KubernetesApplicationSpec{ResourceTemplates: []v1alpha2.ResourceTemplate{{
					Metadata: v1alpha2.TemplateMeta{Name: names[i]},
					Spec:     v1alpha2.ResourceTemplateSpec{Template: runtime.RawExtension{Raw: raw}},
				}}},
			})
		})
		if err != nil {
			return err
		}
		loads, err = p.burstLoads(ctx)
		all = time.Since(started)
		return err
	})
	if err != nil {
		return err
	}
	most, mean := unevenness(loads, equals)
	r.ratio(burstSection, fmt.Sprintf("most applications on one of %d equal targets ÷ the mean, after a burst of %d", equals, s.burst),
		[]float64{most}, []float64{mean}, atMost(1.2), fmt.Sprintf("%s ÷ %s", number(most), number(mean)))
	r.value(burstSection, fmt.Sprintf("until all of a burst of %d have a target", s.burst), all.Seconds(), "s", nil, "")
	return nil
}

// burstLoads waits until every application has a target, and returns their number by
// target.
func (p *planes) burstLoads(ctx context.Context) (loads map[string]int, err error) {
	err = cluster.Poll(ctx, timeout, "the applications to have targets", func(ctx context.Context) error {
		var apps v1alpha2.KubernetesApplicationList
		if err := p.hub.List(ctx, &apps, client.InNamespace(burstNamespace)); err != nil {
			return err
		}
		loads = map[string]int{}
		for _, app := range apps.Items {
			if app.Spec.TargetRef != nil {
				loads[app.Spec.TargetRef.Name]++
			}
		}
		placed := 0
		for _, n := range loads {
			placed += n
		}
		if placed < p.burst {
			return fmt.Errorf("%d of %d have one", placed, p.burst)
		}
		return nil
	})
	return loads, err
}

// unevenness returns the greatest load, and the mean over all targets, including those
// without load.
func unevenness(loads map[string]int, targets int) (most, mean float64) {
	sum := 0
	for n := range maps.Values(loads) {
		sum += n
	}
	if len(loads) > 0 {
		most = float64(slices.Max(slices.Collect(maps.Values(loads))))
	}
	return most, float64(sum) / float64(targets)
}
