package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/intake"
	"github.com/portico-io/portico/controllers/propagation"
	"github.com/portico-io/portico/policies"
)

// rehearsals ask targets for the webhooks, by the means of the controllers.
type rehearsals struct{ *propagation.Rehearser }

// ResourceOf implements webhooks.Rehearsals.
func (rehearsals) ResourceOf(kind kinds.Kind, native *unstructured.Unstructured, application string) (*v1alpha1.KubernetesApplicationResource, error) {
	// A ServiceAccount's pull secrets are names, which no target refuses.
	return intake.ResourceFor(kind, native, application, nil, nil, nil)
}

// newRehearsals prepares what asks targets. It runs on every replica, because
// every replica serves webhooks.
func newRehearsals(ctx context.Context, mgr ctrl.Manager, hubID string, o *Options) (rehearsals, error) {
	direct := clusters.NewDirect(o.DryRunTimeout)
	informer, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.KubernetesTarget{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
			if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if target, ok := object.(*v1alpha1.KubernetesTarget); ok {
				direct.Close(client.ObjectKeyFromObject(target))
			}
		}})
	}
	if err != nil {
		return rehearsals{}, fmt.Errorf("watching targets: %w", err)
	}
	made := propagation.NewRehearser(mgr.GetClient(), mgr.GetAPIReader(), direct, propagation.RehearsalOptions{
		HubID: hubID, Frontier: policies.Frontier{Portico: o.Namespace}, Rules: rules(o, mgr.GetConfig()),
	})
	if err := metrics.Registry.Register(made); err != nil {
		return rehearsals{}, fmt.Errorf("adding the metrics of dry runs: %w", err)
	}
	return rehearsals{made}, nil
}
