package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
)

// fencing returns the options of the Leases on targets, or nil without
// --target-lease-namespace.
func fencing(config *rest.Config, o *Options) *clusters.FenceOptions {
	if o.TargetLeaseNamespace == "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "portico"
	}
	leader := &leadership{config: config, namespace: o.Namespace, name: o.LeaderElectionID, holder: host + "_" + string(uuid.NewUUID())}
	return &clusters.FenceOptions{Namespace: o.TargetLeaseNamespace, Holder: leader.holder, Predecessor: leader.recordHolder}
}

// leadership records the process that leads this hub, on the Lease of the leader
// election. The Lease itself only names the current leader.
type leadership struct {
	config                  *rest.Config
	namespace, name, holder string

	mu          sync.Mutex
	recorded    bool
	predecessor string
}

// recordHolder records this process once, and returns the process that was recorded
// before. Only the leader calls it.
func (l *leadership) recordHolder(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recorded {
		return l.predecessor, nil
	}
	api, err := coordination.NewForConfig(l.config)
	if err != nil {
		return "", fmt.Errorf("preparing access to the hub: %w", err)
	}
	leases, before := api.Leases(l.namespace), ""
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := leases.Get(ctx, l.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // there is no leader election
			lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name, Annotations: map[string]string{v1alpha1.FenceHolderAnnotation: l.holder}}}
			_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		before = lease.Annotations[v1alpha1.FenceHolderAnnotation]
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1alpha1.FenceHolderAnnotation, l.holder)
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("recording the leader of this hub: %w", err)
	}
	l.recorded, l.predecessor = true, before
	return before, nil
}
