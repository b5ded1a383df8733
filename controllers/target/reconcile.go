package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/managedcluster"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/connectionsecret"
)

// namespaceRetryInterval is the delay before a namespace that is being deleted is
// checked again for resources that need the connection of a deleted target.
const namespaceRetryInterval = time.Second

// scope is the state of one reconcile of a target.
type scope struct {
	key types.NamespacedName
	// before is the target as it was read, and target has the status to write.
	before, target *v1alpha1.KubernetesTarget
	copied         managedcluster.Result
}

// Reconcile connects one target, and reports its state.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconciler.Run(ctx, &scope{key: req.NamespacedName}, []reconciler.Step[*scope]{
		{Name: "read target", Run: c.readTarget},
		{Name: "copy connection", Run: c.copyConnection},
		{Name: "connect", Run: c.connect},
		{Name: "report", Run: c.report},
	}, nil)
}

func (c *Controller) readTarget(ctx context.Context, s *scope) error {
	s.target = &v1alpha1.KubernetesTarget{}
	found, err := reconciler.Find(ctx, c.hub, s.key, s.target)
	if err != nil {
		return err
	}
	if !found {
		return c.disconnect(ctx, s.key)
	}
	var since time.Time
	if was := meta.FindStatusCondition(s.target.Status.Conditions, v1alpha1.TargetReachable); was != nil && was.Status == metav1.ConditionFalse {
		since = was.LastTransitionTime.Time
	}
	c.clusters.SetUnreachableSince(s.key, since)
	return nil
}

// disconnect closes the connection of a target that is deleted, and ends the reconcile.
func (c *Controller) disconnect(ctx context.Context, key types.NamespacedName) error {
	c.copier.StopWatching(key)
	c.remembered.forget(key)
	needed, err := c.isConnectionNeeded(ctx, key)
	if err != nil {
		return err
	}
	if needed {
		return reconciler.RequeueAfter(wait.Jitter(namespaceRetryInterval, 1))
	}
	c.clusters.Close(key)
	if err := c.copier.DeletePrivateCopies(ctx, key); err != nil {
		return err
	}
	return reconciler.ErrDone
}

// isConnectionNeeded tells whether a connection has to outlive its target, to delete
// the objects of a namespace that is being deleted. Such a namespace loses its targets,
// their Secrets and its workloads at once, and no Secret can be created in it again.
func (c *Controller) isConnectionNeeded(ctx context.Context, key types.NamespacedName) (bool, error) {
	if _, err := c.clusters.Get(key); err != nil {
		return false, nil // there is no connection to keep
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	// Live, because the cache of namespaces may be behind the cache of targets.
	found, err := reconciler.Find(ctx, c.live, types.NamespacedName{Name: key.Namespace}, namespace)
	if err != nil || !found || namespace.DeletionTimestamp == nil {
		return false, err
	}
	var resources v1alpha1.KubernetesApplicationResourceList
	if err := c.hub.List(ctx, &resources, client.InNamespace(key.Namespace), client.MatchingFields{policies.TargetIndex: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the resources on target %s: %w", key, err)
	}
	return slices.ContainsFunc(resources.Items, func(r v1alpha1.KubernetesApplicationResource) bool {
		return r.Spec.TargetRef != nil && r.Spec.TargetRef.Name == key.Name
	}), nil
}

// copyConnection copies the connection of the target's managed cluster.
func (c *Controller) copyConnection(ctx context.Context, s *scope) error {
	var err error
	if s.copied, err = c.copier.Reconcile(ctx, s.target); err != nil {
		return fmt.Errorf("copying the connection of target %s: %w", s.key, err)
	}
	s.before = s.target.DeepCopy()
	return nil
}

// connect makes the connection from the target's Secret.
func (c *Controller) connect(ctx context.Context, s *scope) error {
	target := c.remembered.withRememberedConnection(s.target)
	config, refusal, err := clusters.ReadConnectionConfig(ctx, c.live, target, c.options.Connections, c.options.Rules)
	if err != nil {
		return err
	}
	if refusal != nil && refusal.Reason == v1alpha1.ReasonSecretMissing {
		switch {
		case target.Spec.ConnectionSecretRef == nil && s.copied.Refusal != nil:
			refusal = &connectionsecret.Refusal{Reason: s.copied.Refusal.Reason, Message: "has no connection: " + s.copied.Refusal.Message}
		case target.Spec.ConnectionSecretRef != nil:
			if needed, err := c.isConnectionNeeded(ctx, s.key); needed || err != nil {
				return err
			}
		}
	}
	if refusal != nil {
		log.FromContext(ctx).V(2).Info("Denied connection to target", "target", s.key, "reason", refusal.Reason)
		c.clusters.Disconnect(s.key, refusal.Reason, refusal.Message)
		return nil
	}
	if err := c.clusters.Connect(c.ctx, s.key, config); err != nil {
		// The error is not reported, because it may quote a certificate.
		c.clusters.Disconnect(s.key, v1alpha1.ReasonInvalidConnection, fmt.Sprintf(
			"has no usable connection: secret %s does not describe one", c.options.Connections.ConnectionSecret(target).Name))
	}
	return nil
}

// report writes the target's status, and requests a reconcile at the time at which the
// status changes without an event.
func (c *Controller) report(ctx context.Context, s *scope) error {
	observed := c.observe(s.key)
	observed.refusal = s.copied.Refusal
	setStatus(s.target, observed, c.options.Clock.Now(), c.options.ExpiryWarning)
	before, after := s.before.Status.Conditions, s.target.Status.Conditions
	written, err := c.writer.PatchStatus(ctx, s.before, s.target, reconciler.Emit(c.recorder, s.target, "Connect"))
	if err != nil {
		return err
	}
	if written {
		events.Emit(c.recorder, s.target, "Connect", credentialEvents(before, after)...)
	}
	requeueAfter := credentialRequeueAfter(observed.expiry, c.options.Clock.Now(), c.options.ExpiryWarning)
	if requeueAfter == 0 || s.copied.RequeueAfter > 0 && s.copied.RequeueAfter < requeueAfter {
		requeueAfter = s.copied.RequeueAfter
	}
	if requeueAfter == 0 {
		return nil
	}
	return reconciler.RequeueAfter(requeueAfter)
}

// observe returns the state of the target's connection.
func (c *Controller) observe(key types.NamespacedName) observation {
	connection, err := c.clusters.Get(key)
	var problem *clusters.Problem
	if errors.As(err, &problem) {
		return observation{state: clusters.State{Reachable: metav1.ConditionFalse, Reason: problem.Reason, Message: problem.Message, Since: problem.Since}}
	}
	config := connection.Config()
	return observation{state: connection.State(), host: config.Host, clusterID: config.ClusterID(), expiry: config.Expiry, fence: connection.Fence()}
}
