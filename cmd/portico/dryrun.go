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
	"github.com/portico-io/portico/controllers/dryrun"
	"github.com/portico-io/portico/controllers/intake"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
)

// dryRunner applies objects on targets as a dry run, for the webhooks. It uses the code
// of the controllers.
type dryRunner struct{ *dryrun.Runner }

// ResourceOf implements webhooks.DryRunner.
func (dryRunner) ResourceOf(kind kinds.Kind, native *unstructured.Unstructured, application string) (*v1alpha1.KubernetesApplicationResource, error) {
	// A dry run does not need the dependencies: the resource only contains their names,
	// which no target refuses.
	return intake.ResourceFor(kind, native, application, nil)
}

// newDryRunner returns the runner of dry runs. Every replica has one, because every
// replica serves webhooks.
func newDryRunner(ctx context.Context, mgr ctrl.Manager, hubID string, connections credentials.Rules, o *Options) (dryRunner, error) {
	made := dryrun.New(mgr.GetClient(), mgr.GetAPIReader(), clusters.NewDirectClients(o.DryRunTimeout, o.TargetLimits()), dryrun.Options{
		HubID: hubID, AllowDefaults: policies.AllowDefaults{PorticoNamespace: o.Namespace}, Rules: connections, Connections: o.Connections(),
	})
	informer, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.KubernetesTarget{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
			if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if target, ok := object.(*v1alpha1.KubernetesTarget); ok {
				made.Forget(client.ObjectKeyFromObject(target))
			}
		}})
	}
	if err != nil {
		return dryRunner{}, fmt.Errorf("watching targets: %w", err)
	}
	if err := metrics.Registry.Register(made); err != nil {
		return dryRunner{}, fmt.Errorf("adding the metrics of dry runs: %w", err)
	}
	return dryRunner{made}, nil
}
