package scheduler

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/targetselection"
)

// WatchLoad updates a load by the events of a cache. Every replica has one, because
// admission compares targets as well.
func WatchLoad(ctx context.Context, events cache.Informers, load *targetselection.Load) (*LoadSynced, error) {
	synced := &LoadSynced{}
	for _, watch := range []struct {
		object  client.Object
		set     func(object any)
		deleted func(namespace, name string)
	}{
		{&v1alpha1.KubernetesTarget{}, func(object any) {
			if target, ok := object.(*v1alpha1.KubernetesTarget); ok {
				load.SetTarget(target)
			}
		}, load.DeleteTarget},
		{&v1alpha2.KubernetesApplication{}, func(object any) {
			if app, ok := object.(*v1alpha2.KubernetesApplication); ok {
				load.SetApplication(app)
			}
		}, load.DeleteApplication},
		{&v1alpha1.KubernetesApplicationResource{}, func(object any) {
			if resource, ok := object.(*v1alpha1.KubernetesApplicationResource); ok {
				load.SetResource(resource)
			}
		}, load.DeleteResource},
	} {
		informer, err := events.GetInformer(ctx, watch.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watching the load of targets: %w", err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    watch.set,
			UpdateFunc: func(_, object any) { watch.set(object) },
			DeleteFunc: func(object any) {
				key, err := toolscache.DeletionHandlingObjectToName(object)
				if err == nil {
					watch.deleted(key.Namespace, key.Name)
				}
			},
		})
		if err != nil {
			return nil, fmt.Errorf("watching the load of targets: %w", err)
		}
		synced.all = append(synced.all, registration.HasSynced)
	}
	return synced, nil
}

// LoadSynced tells whether a load has counted all objects that existed at the start.
type LoadSynced struct{ all []toolscache.InformerSynced }

// Wait waits until the load has counted them.
func (s *LoadSynced) Wait(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), s.all...) {
		return fmt.Errorf("waiting for the load of targets: %w", context.Cause(ctx))
	}
	return nil
}

// IndexUnscheduled is the index function of policies.UnscheduledIndex.
func IndexUnscheduled(object client.Object) []string {
	unscheduled := false
	switch o := object.(type) {
	case *v1alpha2.KubernetesApplication:
		_, moving := moveFrom(o)
		unscheduled = moving || o.Spec.TargetRef == nil
	case *v1alpha1.KubernetesApplicationResource:
		unscheduled = isUnscheduled(o)
	}
	if !unscheduled {
		return nil
	}
	return []string{policies.Unscheduled}
}
