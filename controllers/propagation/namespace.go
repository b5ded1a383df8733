package propagation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/namespaceobjects"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// keepNamespaceInUse keeps a Namespace with objects of others on the target, and tells
// whether it did. If the namespace of the resource is being deleted on the hub, users
// can no longer decide: then the Namespace is released.
func (c *remover) keepNamespaceInUse(ctx context.Context, s *scope.Scope) (bool, error) {
	if policies.NamespaceOf(s.Resource) == "" || s.Observed == nil || s.Observed.GetDeletionTimestamp() != nil || policies.HasForceAnnotation(s.Resource) {
		return false, nil
	}
	app := &v1alpha2.KubernetesApplication{}
	if name, member := s.Resource.Labels[v1alpha1.ApplicationLabel]; member {
		if err := c.hub.Get(ctx, client.ObjectKey{Namespace: s.Resource.Namespace, Name: name}, app); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading application %s: %w", name, err)
		}
	}
	if policies.HasForceAnnotation(app) {
		return false, nil
	}
	var others policies.ObjectCounts
	err := s.CallTarget(ctx, func(ctx context.Context) (err error) {
		others, err = namespaceobjects.Count(ctx, c.cache, s.Connection.Client(), s.Resource, s.Target.Name, c.options.HubID)
		return err
	})
	if err != nil {
		return false, s.ProbeIfUnreachable(err)
	}
	message := policies.NamespaceInUseMessage(s.Resource, s.Target.Name, others)
	if message == "" {
		return false, nil
	}
	orphan, err := c.orphansNamespace(ctx, s, app)
	if err != nil {
		return false, err
	}
	if orphan {
		if err := c.unmarkObject(ctx, s, s.Desired); err != nil {
			return false, err
		}
		s.Events = append(s.Events, events.Event{Reason: v1alpha1.EventReleased, Note: fmt.Sprintf(
			"%s remains on target %s, without Portico's marks, because it holds objects of others: %s", policies.RemoteObjectName(s.Resource), s.Target.Name, others)})
		return true, nil
	}
	s.Resource.Status.State = v1alpha1.StateDeleting
	s.SetCondition(v1alpha1.Synced, metav1.ConditionFalse, v1alpha1.ReasonNamespaceInUse, message)
	return true, reconciler.RequeueAfter(scope.PollInterval)
}

// orphansNamespace tells whether a Namespace with objects of others is released: the
// application has the deletion policy Orphan, the resource moves to another target, or
// the namespace of the resource is being deleted.
func (c *remover) orphansNamespace(ctx context.Context, s *scope.Scope, app *v1alpha2.KubernetesApplication) (bool, error) {
	if deletion, _ := policies.DeletionPolicyOf(app); deletion == v1alpha1.DeletionOrphan || s.Resource.DeletionTimestamp == nil {
		return true, nil
	}
	namespace := plan.MetadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.hub.Get(ctx, client.ObjectKey{Name: s.Resource.Namespace}, namespace); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return namespace.DeletionTimestamp != nil, nil
}
