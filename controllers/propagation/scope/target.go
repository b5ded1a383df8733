package scope

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/reconciler"
)

// All requests to a target are in this file. Each write is logged with its reason.

// CallTarget makes a request within the timeout of the target.
func (s *Scope) CallTarget(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := s.Connection.WithTimeout(ctx)
	defer cancel()
	return request(ctx)
}

// GetLive reads the object from the target. An object that is gone ends the reconcile,
// because the cache is behind.
func (s *Scope) GetLive(ctx context.Context) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(s.Desired.GroupVersionKind())
	err := s.CallTarget(ctx, func(ctx context.Context) error {
		return s.Connection.Client().Get(ctx, client.ObjectKeyFromObject(s.Desired), live)
	})
	if apierrors.IsNotFound(err) {
		return nil, reconciler.RequeueAfter(reconciler.CacheLag)
	}
	if err != nil {
		return nil, s.ProbeIfUnreachable(fmt.Errorf("reading %s on target %s: %w", s.Desired.GetKind(), s.Target.Name, err))
	}
	return live, nil
}

// ListAutoscalers reads the HorizontalPodAutoscalers in the namespace of the object from
// the target, because its cache has only those of this hub. It returns false if the
// account may not list them, or the target does not have the kind.
func (s *Scope) ListAutoscalers(ctx context.Context) (all []unstructured.Unstructured, known bool, err error) {
	list := &unstructured.UnstructuredList{}
	gvk := kinds.HorizontalPodAutoscaler{}.GroupVersionKind()
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = s.CallTarget(ctx, func(ctx context.Context) error {
		return s.Connection.Client().List(ctx, list, client.InNamespace(s.Desired.GetNamespace()))
	})
	switch {
	case apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return nil, false, nil
	case err != nil:
		return nil, false, s.ProbeIfUnreachable(fmt.Errorf("listing autoscalers on target %s: %w", s.Target.Name, err))
	}
	return list.Items, true, nil
}

// RequestApply applies the desired object, and returns the resulting object.
func (s *Scope) RequestApply(ctx context.Context, with plan.ApplyOptions, more ...client.ApplyOption) (*unstructured.Unstructured, error) {
	object, force := plan.ApplyRequest(s.Desired, s.Observed, s.State, with)
	options := append([]client.ApplyOption{client.FieldOwner(v1alpha1.PropagationManager)}, more...)
	if force {
		options = append(options, client.ForceOwnership)
	}
	return object, s.CallTarget(ctx, func(ctx context.Context) error {
		return s.Connection.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	})
}

// CreateNamespace creates the namespace of the object. Portico does not own it
// afterwards, because it may get objects of others.
func (s *Scope) CreateNamespace(ctx context.Context) error {
	namespace := plan.NamespaceObject(s.Desired)
	err := s.CallTarget(ctx, func(ctx context.Context) error {
		return s.Connection.Client().Create(ctx, namespace, client.FieldOwner(v1alpha1.PropagationManager))
	})
	if err == nil {
		s.LogWrite(ctx, "Created namespace on target", namespace, "reason", "the object needs it")
	}
	return client.IgnoreAlreadyExists(err)
}

// DeleteOnTarget deletes an object if it did not change since it was read. It deletes
// no other object of its name.
func (s *Scope) DeleteOnTarget(ctx context.Context, object *unstructured.Unstructured, reason string, options ...client.DeleteOption) error {
	options = append(options, client.Preconditions{UID: ptr.To(object.GetUID())})
	err := s.CallTarget(ctx, func(ctx context.Context) error {
		return s.Connection.Client().Delete(ctx, object, options...)
	})
	if err == nil {
		s.LogWrite(ctx, "Deleted object on target", object, "reason", reason)
	}
	return err
}

// LogWrite writes a change on the target to the log, without the content of the object.
func (s *Scope) LogWrite(ctx context.Context, message string, object *unstructured.Unstructured, data ...any) {
	if logger := log.FromContext(ctx).V(1); logger.Enabled() {
		logger.Info(message, append([]any{"kind", object.GetKind(), "object", klog.KObj(object)}, data...)...)
	}
}

// ReportRefusal reports the error of a target that refused a request.
func (s *Scope) ReportRefusal(err error) error {
	if errors.Is(err, clusters.ErrFenced) {
		return err
	}
	if clusters.IsUnreachable(err) {
		return s.ProbeIfUnreachable(err)
	}
	s.SetFailed(v1alpha1.ReasonRefused, plan.RefusalMessage(s.Target.Name, s.Desired, err))
	// The error is not wrapped: a conflict on the target is not a conflict on the hub,
	// which is retried at once.
	return fmt.Errorf("applying %s to target %s: %s", s.Desired.GetKind(), s.Target.Name, plan.ErrorMessage(err))
}

// ProbeIfUnreachable requests a probe of the target after an error of the connection. It
// returns the error.
func (s *Scope) ProbeIfUnreachable(err error) error {
	if clusters.IsUnreachable(err) {
		s.Connection.RequestProbe()
	}
	return err
}

// RetryOtherVersion ends the reconcile if the target no longer serves the version of a
// kind, because the object may still exist. The next reconcile uses another version.
func (s *Scope) RetryOtherVersion(err error, object *unstructured.Unstructured) error {
	if !clusters.IsVersionNotServed(err) {
		return nil
	}
	s.Connection.MarkVersionDropped(object.GroupVersionKind())
	return reconciler.RequeueAfter(reconciler.CacheLag)
}
