// Package managedcluster copies the connection Secrets of managed clusters to the
// targets that name them in spec.clusterRef, and keeps the copies equal to the
// originals.
package managedcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/dynamicwatch"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies/connectionsecret"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=workload.crossplane.io,resources=kubernetestargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// The delays after which a target is reconciled again, because no watch reports the
// change: a right that is granted, a kind that is served without a
// CustomResourceDefinition, a Secret that the garbage collector is about to delete.
const (
	permissionRetryInterval  = 10 * time.Second
	kindRetryInterval        = 10 * time.Second
	predecessorRetryInterval = time.Second
)

// Copier copies the connections of managed clusters.
type Copier struct {
	hub     client.Client
	writer  reconciler.Writer
	live    client.Reader // Secrets are not kept in memory
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
	watches *dynamicwatch.Watches
	options connectionsecret.Options
	dependencyIndex
}

// New returns a copier. Its watches end with ctx. changed is called with each target
// whose managed cluster changed.
func New(ctx context.Context, mgr ctrl.Manager, o connectionsecret.Options, changed func(target types.NamespacedName)) (*Copier, error) {
	secrets := &metav1.PartialObjectMetadata{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := mgr.GetFieldIndexer().IndexField(ctx, secrets, PrivateCopyIndex, IndexPrivateCopy(o)); err != nil {
		return nil, fmt.Errorf("preparing index %s: %w", PrivateCopyIndex, err)
	}
	clients, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing access to managed clusters: %w", err)
	}
	return NewCopier(ctx, Hub{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Dynamic: clients, Mapper: mgr.GetRESTMapper()}, o, changed), nil
}

// Hub is the access to the hub that a copier needs.
type Hub struct {
	// Client reads the cache, which has PrivateCopyIndex, and writes.
	Client client.Client
	// Live reads Secrets, which are not kept in memory.
	Live    client.Reader
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
}

// NewCopier returns a copier, as New does.
func NewCopier(ctx context.Context, hub Hub, o connectionsecret.Options, changed func(target types.NamespacedName)) *Copier {
	c := &Copier{
		hub: hub.Client, writer: reconciler.Writer{Client: hub.Client, Owner: v1alpha1.PublishManager},
		live: hub.Live, dynamic: hub.Dynamic, mapper: hub.Mapper, options: o, dependencyIndex: newDependencyIndex(),
	}
	notify := func(targets []types.NamespacedName) {
		for _, target := range targets {
			changed(target)
		}
	}
	c.watches = dynamicwatch.New(ctx, dynamicwatch.Options{
		Client:  hub.Dynamic,
		Trim:    connectionsecret.TrimCluster,
		Changed: func(_ schema.GroupVersionResource, cluster types.NamespacedName) { notify(c.targetsOfCluster(cluster)) },
		Stopped: func(kind schema.GroupVersionResource) { notify(c.TargetsOfGroup(kind.Group)) },
	})
	return c
}

// Result is the result of a reconcile.
type Result struct {
	// Refusal is the reason why the connection of the cluster is not copied; nil if it
	// is copied. An existing copy remains: a cluster that cannot be read need not be
	// deleted.
	Refusal *connectionsecret.Refusal
	// RequeueAfter is the delay until the next reconcile, for changes that no watch
	// reports; 0 for none.
	RequeueAfter time.Duration
}

// scope is the state of one reconcile of a target.
type scope struct {
	key    types.NamespacedName
	target *v1alpha1.KubernetesTarget
	// shared is the copy in the target's namespace, and private the copy in Portico's
	// own namespace.
	shared, private secretCopy
	// desired is the copy that the target needs, and other the copy that it does not
	// need.
	desired, other *secretCopy
	// data of the desired copy.
	data   map[string][]byte
	result Result
}

// Reconcile copies the connection of a target's managed cluster to the target's
// namespace, or to Portico's own. It sets spec.connectionSecretRef to a copy in the
// target's namespace. It does nothing if a user set spec.connectionSecretRef.
func (c *Copier) Reconcile(ctx context.Context, target *v1alpha1.KubernetesTarget) (Result, error) {
	s := &scope{key: client.ObjectKeyFromObject(target), target: target}
	err := reconciler.RunSteps(ctx, s, []reconciler.Step[*scope]{
		{Name: "delete former copies", Run: c.deleteFormerPrivateCopies},
		{Name: "read copies", Run: c.readCopies},
		{Name: "select copy", Run: c.selectCopy},
		{Name: "read connection", Run: c.readConnection},
		{Name: "check owner", Run: c.checkOwner},
		{Name: "write copy", Run: c.writeCopy},
		{Name: "reference copy", Run: c.setConnectionSecretRef},
		{Name: "delete other copy", Run: c.deleteOtherCopy},
	})
	if reconciler.IsEnd(err) {
		err = nil
	}
	if s.result.Refusal != nil && err == nil {
		log.FromContext(ctx).V(2).Info("Skipped copy of connection", "reason", s.result.Refusal.Reason)
	}
	return s.result, err
}

// StopWatching ends the watches for a target.
func (c *Copier) StopWatching(target types.NamespacedName) {
	c.watches.Release(target)
	c.deleteDependencies(target)
}

// DeletePrivateCopies deletes the private copies of a target that is deleted.
func (c *Copier) DeletePrivateCopies(ctx context.Context, target types.NamespacedName) error {
	c.StopWatching(target)
	return c.deletePrivateCopiesExcept(ctx, target, "")
}

// selectCopy decides which copy the target needs. If it needs none, existing copies are
// deleted.
func (c *Copier) selectCopy(ctx context.Context, s *scope) error {
	if !connectionsecret.IsCopyWanted(s.target, s.shared.owner) {
		c.StopWatching(s.key)
		if s.target.DeletionTimestamp != nil {
			return reconciler.ErrDone
		}
		if err := errors.Join(c.deleteCopy(ctx, s.shared), c.deleteCopy(ctx, s.private)); err != nil {
			return err
		}
		return reconciler.ErrDone
	}
	s.desired, s.other = &s.shared, &s.private
	if c.options.IsPrivate(s.target) {
		s.desired, s.other = &s.private, &s.shared
	}
	c.setDependencies(s.key, dependencies{group: connectionsecret.ClusterKind(*s.target.Spec.ClusterRef).Group, secrets: keysOf(s.shared, s.private)})
	return nil
}

// readConnection reads the connection of the managed cluster. If it cannot be read, an
// existing copy is kept, and moves to the place that the target names. Copies of
// another cluster, which the target named before, are deleted.
func (c *Copier) readConnection(ctx context.Context, s *scope) error {
	err := c.readSource(ctx, s)
	if err == nil && s.result.Refusal == nil {
		return nil
	}
	if err == nil && s.desired.owner == connectionsecret.OwnerNone && s.other.owner == connectionsecret.OwnerTarget && connectionsecret.IsCopyOf(s.target, s.other.existing) {
		s.data = s.other.existing.Data
		return nil
	}
	for _, existing := range []secretCopy{s.shared, s.private} {
		if existing.owner == connectionsecret.OwnerTarget && !connectionsecret.IsCopyOf(s.target, existing.existing) {
			err = errors.Join(err, c.deleteCopy(ctx, existing))
		}
	}
	if err != nil {
		return err
	}
	return reconciler.ErrDone
}

// checkOwner ends the reconcile if another object has the name of the copy.
func (c *Copier) checkOwner(_ context.Context, s *scope) error {
	switch s.desired.owner {
	case connectionsecret.OwnerFormerTarget:
		s.result = Result{RequeueAfter: predecessorRetryInterval}
		return reconciler.ErrDone
	case connectionsecret.OwnerOther:
		s.result = Result{Refusal: &connectionsecret.Refusal{Reason: v1alpha1.ReasonOwnershipConflict, Message: fmt.Sprintf(
			"secret %s exists and does not belong to Portico, so the connection of %s is not copied there; delete it, or name it in spec.connectionSecretRef",
			s.desired.key.Name, connectionsecret.ClusterTitle(*s.target.Spec.ClusterRef))}}
		return reconciler.ErrDone
	}
	return nil
}

// writeCopy makes the copy equal to its source.
func (c *Copier) writeCopy(ctx context.Context, s *scope) error {
	desired, changed := s.desired.desired(s.target, s.desired.existing, s.data)
	var err error
	switch {
	case !changed:
	case s.desired.existing == nil:
		err = c.writer.Create(ctx, desired, "copying a connection to")
	default:
		_, err = c.writer.Patch(ctx, s.desired.existing, desired, "copying a connection to")
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reconciler.ErrDone // the target is deleted too
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		// A retry would not help. The reason of the hub's admission may help the user.
		s.result = Result{RequeueAfter: kindRetryInterval, Refusal: &connectionsecret.Refusal{Reason: v1alpha1.ReasonRefused, Message: fmt.Sprintf(
			"the connection of %s cannot be copied: %v", connectionsecret.ClusterTitle(*s.target.Spec.ClusterRef), err)}}
		return reconciler.ErrDone
	}
	return err
}

// setConnectionSecretRef names the copy in the target's spec, if the copy is in the
// target's namespace. No object names a private copy.
func (c *Copier) setConnectionSecretRef(ctx context.Context, s *scope) error {
	private := c.options.IsPrivate(s.target)
	if private == (s.target.Spec.ConnectionSecretRef == nil) {
		return nil
	}
	before := s.target.DeepCopy()
	s.target.Spec.ConnectionSecretRef = nil
	if !private {
		s.target.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Name: s.shared.key.Name}
	}
	_, err := c.writer.Patch(ctx, before, s.target, "naming the connection secret in")
	return err
}

func (c *Copier) deleteOtherCopy(ctx context.Context, s *scope) error {
	return c.deleteCopy(ctx, *s.other)
}
