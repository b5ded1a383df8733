package dryrun

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/connectionsecret"
)

// connections keeps the configuration of each target's connection, for one specification
// of the target and one version of the connection Secret. The caches hold the metadata of
// Secrets, so a dry run reads a Secret from the API server only after a change.
type connections struct {
	mu       sync.Mutex
	byTarget map[types.NamespacedName]connection
}

type connection struct {
	of     connectionVersion
	config clusters.ConnectionConfig
}

// connectionVersion identifies the specification of a target, and a version of its
// connection Secret.
type connectionVersion struct {
	target, secret types.UID
	generation     int64
	version        string
}

// get returns the configuration of a version; false if the version is not known.
func (c *connections) get(target types.NamespacedName, of connectionVersion) (clusters.ConnectionConfig, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, found := c.byTarget[target]
	return kept.config, found && kept.of == of
}

func (c *connections) set(target types.NamespacedName, of connectionVersion, config clusters.ConnectionConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byTarget == nil {
		c.byTarget = map[types.NamespacedName]connection{}
	}
	c.byTarget[target] = connection{of, config}
}

func (c *connections) forget(target types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byTarget, target)
}

// Forget closes the connection of a deleted target.
func (r *Runner) Forget(target types.NamespacedName) {
	r.direct.Close(target)
	r.connections.forget(target)
}

// connect finds the connection to the target. A target with the condition
// TargetReachable=False gets no request.
func (r *Runner) connect(ctx context.Context, s *scope) *policies.DryRun {
	if reachable := meta.FindStatusCondition(s.target.Status.Conditions, v1alpha1.TargetReachable); reachable != nil && reachable.Status == metav1.ConditionFalse {
		return unavailable(s, "is not reachable ("+reachable.Reason+")")
	}
	config, refusal, err := r.readConnection(ctx, s.target)
	if err != nil || refusal != nil {
		return unavailable(s, "has no usable connection")
	}
	s.connection, err = r.direct.ClientFor(client.ObjectKeyFromObject(s.target), config)
	if err != nil { // the error may quote the content of certificates
		return unavailable(s, "has no usable connection")
	}
	return nil
}

// readConnection returns the configuration of the connection to a target.
func (r *Runner) readConnection(ctx context.Context, target *v1alpha1.KubernetesTarget) (clusters.ConnectionConfig, *connectionsecret.Refusal, error) {
	key, of := client.ObjectKeyFromObject(target), connectionVersion{target: target.UID, generation: target.Generation}
	secret := plan.MetadataOf(corev1.SchemeGroupVersion.WithKind("Secret"))
	cached := r.hub.Get(ctx, r.options.Connections.ConnectionSecret(target), secret) == nil
	of.secret, of.version = secret.UID, secret.ResourceVersion
	if config, found := r.connections.get(key, of); found && cached && policies.ConnectionDeniedReason(target, secret) == "" {
		return config, nil, nil
	}
	config, refusal, err := clusters.ReadConnectionConfig(ctx, r.live, target, r.options.Connections, r.options.Rules)
	if cached && err == nil && refusal == nil {
		r.connections.set(key, of, config)
	}
	return config, refusal, err
}
