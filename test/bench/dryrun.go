package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/test/cluster/install"
)

// dryRun applies Deployments on the hub, one at a time, in two namespaces in turns. In
// one namespace there is a dry run on the target, and in the other there is none. The
// request on the hub is a dry run as well, so that no controller acts. To webhooks it
// is the same.
func (b *system) dryRun(ctx context.Context) error {
	const dryRunNamespace, otherNamespace = "bench-asked", "bench-unasked"
	for _, namespace := range []string{dryRunNamespace, otherNamespace} {
		if err := makeNamespace(ctx, b.onHub, namespace); err != nil {
			return err
		}
		if err := makeNamespace(ctx, b.onTarget, namespace); err != nil { // so that the dry run does not have to create the namespace
			return err
		}
		if err := install.Publish(ctx, b.hub, b.target, namespace, nil); err != nil {
			return err
		}
	}
	hub, err := client.New(b.hub.Config(), client.Options{})
	if err != nil {
		return err
	}
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: otherNamespace, Name: b.target.Name()}}
	target.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("KubernetesTarget"))
	never := fmt.Sprintf(`{"spec":{"dryRun":%q}}`, v1alpha1.DryRunNever)
	if err := hub.Patch(ctx, target, client.RawPatch(types.MergePatchType, []byte(never))); err != nil {
		return err
	}

	const warm = 20 // until connections are open, and the new targets are in the caches
	took := map[string][]float64{}
	err = step(fmt.Sprintf("applying %d Deployments with a dry run on the target, and without", b.samples), nil, func() error {
		for i := range warm + b.samples {
			for _, namespace := range []string{dryRunNamespace, otherNamespace} {
				started := time.Now()
				_, err := b.onHub.AppsV1().Deployments(namespace).Create(ctx, deployment(namespace, "tried", fmt.Sprintf("tried-%d", i), true),
					metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err != nil {
					return err
				}
				if i >= warm {
					took[namespace] = append(took[namespace], time.Since(started).Seconds()*1000)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, q := range []float64{0.5, 0.99} {
		with, without := quantile(took[dryRunNamespace], q), quantile(took[otherNamespace], q)
		b.report.ratio(dryRunSection, fmt.Sprintf("p%g of an apply, target asked ÷ not asked", 100*q),
			[]float64{with}, []float64{without}, nil, fmt.Sprintf("%s ms ÷ %s ms", number(with), number(without)))
	}
	return nil
}
