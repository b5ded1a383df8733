package managedcluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/dynamicwatch"
	"github.com/portico-io/portico/policies/connectionsecret"
)

// readSource reads the connection of the managed cluster that a target names, or sets
// the result to a refusal.
func (c *Copier) readSource(ctx context.Context, s *scope) error {
	ref := *s.target.Spec.ClusterRef
	kind := connectionsecret.ClusterKind(ref)
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		c.watches.Release(s.key)
		s.result = Result{RequeueAfter: kindRetryInterval, Refusal: unknownKind(ref)}
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking up kind %s: %w", kind, err)
	}
	key, refusal := connectionsecret.ClusterKey(s.target, mapping.Scope.Name() == meta.RESTScopeNameNamespace)
	if refusal != nil {
		c.watches.Release(s.key)
		s.result = Result{Refusal: refusal}
		return nil
	}
	deps := dependencies{group: kind.Group, cluster: key, secrets: keysOf(s.shared, s.private)}
	c.setDependencies(s.key, deps)
	cluster, err := c.getCluster(ctx, s.key, mapping.Resource, key)
	switch {
	case apierrors.IsForbidden(err):
		s.result = Result{RequeueAfter: permissionRetryInterval, Refusal: permissionMissing(ref, mapping.Resource, err)}
		return nil
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		s.result = Result{RequeueAfter: kindRetryInterval, Refusal: unknownKind(ref)}
		return nil
	case apierrors.IsNotFound(err):
		s.result = Result{Refusal: &connectionsecret.Refusal{Reason: v1alpha1.ReasonClusterMissing, Message: fmt.Sprintf(
			"%s %s, which spec.clusterRef names, does not exist", ref.Kind, ref.Name)}}
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", connectionsecret.ClusterTitle(ref), err)
	}
	return c.readSourceSecret(ctx, s, cluster, deps)
}

// readSourceSecret reads the connection Secret of a managed cluster.
func (c *Copier) readSourceSecret(ctx context.Context, s *scope, cluster *unstructured.Unstructured, deps dependencies) error {
	source, refusal := connectionsecret.SourceSecret(cluster)
	if refusal != nil {
		s.result = Result{Refusal: refusal}
		return nil
	}
	deps.secrets = append(deps.secrets, source)
	c.setDependencies(s.key, deps)
	secret, err := c.getSecret(ctx, source)
	if err != nil {
		return err
	}
	s.data, refusal = connectionsecret.DataToCopy(cluster, source, secret)
	s.result = Result{Refusal: refusal}
	return nil
}

// getCluster reads a managed cluster. The watch of its kind begins before, so that no
// change is missed.
func (c *Copier) getCluster(ctx context.Context, target types.NamespacedName, kind schema.GroupVersionResource, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if err := c.watches.Watch(ctx, target, kind); err != nil {
		return nil, err
	}
	return c.dynamic.Resource(kind).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

func unknownKind(ref v1alpha1.ClusterReference) *connectionsecret.Refusal {
	return &connectionsecret.Refusal{Reason: v1alpha1.ReasonUnknownKind, Message: fmt.Sprintf(
		"the hub does not know kind %s of %s; install its CustomResourceDefinition, or correct spec.clusterRef", ref.Kind, ref.APIVersion)}
}

// permissionMissing names the right that Portico lacks, and the commands that grant it.
func permissionMissing(ref v1alpha1.ClusterReference, kind schema.GroupVersionResource, err error) *connectionsecret.Refusal {
	verb := "get"
	var refused *dynamicwatch.WatchError
	if errors.As(err, &refused) {
		verb = refused.Verb
	}
	role := "portico-" + kind.Resource
	return &connectionsecret.Refusal{Reason: v1alpha1.ReasonPermissionMissing, Message: fmt.Sprintf(
		"Portico may not %s %s to read %s; give it the right: "+
			"kubectl create clusterrole %s --verb=get,list,watch --resource=%s && kubectl label clusterrole %s %s=true",
		verb, kind.GroupResource(), connectionsecret.ClusterTitle(ref), role, kind.GroupResource(), role, v1alpha1.AggregateToPorticoLabel)}
}
