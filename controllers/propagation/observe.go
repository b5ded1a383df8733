package propagation

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/policies"
)

// observer has the steps that write the state of the object into the status.
type observer struct {
	*base
	metrics *memory.Metrics
}

// mirrorStatus copies the status of the object, from one read of it. For a resource that
// moves, the status of the old target remains until the object is ready on the new one.
func (c *observer) mirrorStatus(ctx context.Context, s *scope.Scope) error {
	if s.IsMoving() {
		if problem, err := c.readinessProblem(ctx, s); err != nil {
			return err
		} else if problem != "" {
			c.setScheduled(s, problem)
			return nil
		}
	}
	s.Resource.Status.Target = s.Target.Name
	c.setScheduled(s, "")
	remote, found := s.Observed.Object["status"]
	if !found {
		s.Resource.Status.Remote = nil
	} else {
		data, err := json.Marshal(remote)
		if err != nil {
			return fmt.Errorf("encoding the status of %s: %w", s.Desired.GetKind(), err)
		}
		if s.Resource.Status.Remote == nil || !fields.EqualJSON(s.Resource.Status.Remote.Raw, data) {
			s.Resource.Status.Remote = &apiextensionsv1.JSON{Raw: data}
		}
	}
	// Until the target has observed the last apply, its status is of an older generation.
	if generation := kinds.ObservedHubGeneration(s.Resource, s.Desired, s.Observed); generation > 0 {
		s.Resource.Status.ObservedHubGeneration = generation
	}

	ready := policies.ReadinessOf(s.Observed, s.Resource.Spec.Readiness)
	if ready.IsReady() {
		ready.Message = fmt.Sprintf("%s %s is ready on target %s", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name)
	}
	s.SetCondition(v1alpha1.Ready, ready.Status, ready.Reason, ready.Message)
	return c.mirrorFullObject(ctx, s)
}

// mirrorFullObject copies the whole object for spec.observe: Full. Caches do not hold
// managed fields, so the object is read from the target, once for each version.
func (c *observer) mirrorFullObject(ctx context.Context, s *scope.Scope) error {
	if s.Resource.Spec.Observe != v1alpha1.ObserveFull || plan.ShowsVersion(s.Resource.Status.Observed, s.Observed) {
		return nil
	}
	live, err := s.GetLive(ctx)
	if err != nil {
		return err
	}
	observed, owners, err := plan.RedactedObject(live)
	if err != nil {
		return fmt.Errorf("showing %s %s: %w", s.Desired.GetKind(), s.Desired.GetName(), err)
	}
	status := &s.Resource.Status
	size := len(observed.Raw)
	for _, owner := range owners {
		size += len(owner.Manager) + len(owner.Fields.Raw)
	}
	if size > plan.MaxObservedBytes {
		status.Observed, status.Ownership = nil, nil
		s.SetCondition(v1alpha1.Observed, metav1.ConditionFalse, v1alpha1.ReasonTooLarge, fmt.Sprintf(
			"%s %s is larger than the limit of %d KiB for the status; read it on target %s", s.Desired.GetKind(), s.Desired.GetName(), plan.MaxObservedBytes>>10, s.Target.Name))
		return nil
	}
	if status.Observed == nil || !fields.EqualJSON(status.Observed.Raw, observed.Raw) {
		status.Observed = observed
	}
	if !plan.EqualFieldOwners(status.Ownership, owners) {
		status.Ownership = owners
	}
	s.SetCondition(v1alpha1.Observed, metav1.ConditionTrue, v1alpha1.ReasonObserved,
		fmt.Sprintf("%s %s is shown as it is on target %s", s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name))
	return nil
}

// setScheduled sets the condition Scheduled. While a move is requested, the scheduler sets
// that condition.
func (c *observer) setScheduled(s *scope.Scope, unready string) {
	if _, requested := s.Resource.Annotations[v1alpha1.MoveFromAnnotation]; requested {
		return
	}
	message, reason := c.scheduledMessage(s), v1alpha1.ReasonScheduled
	if unready != "" {
		message += "; not ready there yet: " + unready
		reason = v1alpha1.ReasonMoving
	}
	s.SetCondition(v1alpha1.Scheduled, metav1.ConditionTrue, reason, message)
}

// scheduledMessage names the targets of a resource.
func (c *observer) scheduledMessage(s *scope.Scope) string {
	subject := "resource"
	if application, ok := s.Resource.Labels[v1alpha1.ApplicationLabel]; ok {
		subject = "application " + application
	}
	leaving := s.Resource.Spec.LeavingTargetRef
	switch {
	case leaving == nil:
		return fmt.Sprintf("%s runs on target %s", subject, s.Target.Name)
	case s.IsMoving():
		return fmt.Sprintf("%s moves from target %s to target %s", subject, leaving.Name, s.Target.Name)
	}
	old, err := c.clusters.Get(types.NamespacedName{Namespace: s.Resource.Namespace, Name: leaving.Name})
	if err != nil || !old.State().IsReachable() {
		return fmt.Sprintf("%s runs on target %s; its objects on target %s are deleted when that target is reachable", subject, s.Target.Name, leaving.Name)
	}
	return fmt.Sprintf("%s runs on target %s, and leaves target %s when all its resources are ready", subject, s.Target.Name, leaving.Name)
}

// readinessProblem returns the reason why the object on the new target is not ready. It
// reads the object from the target: after a move back, the cache may still have an object
// that was deleted a moment ago.
func (c *observer) readinessProblem(ctx context.Context, s *scope.Scope) (string, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(s.Desired.GroupVersionKind())
	err := s.CallTarget(ctx, func(ctx context.Context) error {
		return s.Connection.Client().Get(ctx, client.ObjectKeyFromObject(s.Desired), live)
	})
	if err != nil {
		return "", s.ProbeIfUnreachable(fmt.Errorf("reading %s on target %s: %w", s.Desired.GetKind(), s.Target.Name, err))
	}
	// An object that has ended, or is suspended, does not become ready by waiting.
	if ready := policies.ReadinessOf(live, s.Resource.Spec.Readiness); !ready.IsReady() && !kinds.IsFinished(live) && !kinds.IsSuspended(live) {
		return ready.Message, nil
	}
	s.Observed = live
	return "", nil
}
