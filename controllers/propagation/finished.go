package propagation

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// keepFinished ends the reconcile of a Job or Pod that has ended and does not exist on the
// target: it was deleted there, or its resource has moved. Another apply would run it
// again. A Pod that was deleted before its end has failed.
func (c *observer) keepFinished(_ context.Context, s *scope.Scope) error {
	if s.State != plan.Absent {
		return nil
	}
	last, err := plan.LastStatus(s.Desired, s.Resource, s.Target.Name)
	if err != nil || last == nil {
		return err
	}
	data, err := json.Marshal(last)
	if err != nil {
		return fmt.Errorf("encoding the last status of %s: %w", s.Desired.GetKind(), err)
	}
	status := &s.Resource.Status
	isNew := !fields.EqualJSON(status.Remote.Raw, data)
	status.Target, status.State, status.RemoteUID = s.Target.Name, v1alpha1.StateSubmitted, ""
	status.Remote = &apiextensionsv1.JSON{Raw: data}
	c.setScheduled(s, "")
	if kinds.IsDeletedOnTarget(last) {
		message := fmt.Sprintf("%s %s was deleted on target %s before its end, and is not run again; delete and re-create it to run it",
			s.Desired.GetKind(), s.Desired.GetName(), s.Target.Name)
		s.SetCondition(v1alpha1.Synced, metav1.ConditionTrue, v1alpha1.ReasonFinished, message)
		s.SetCondition(v1alpha1.Ready, metav1.ConditionFalse, v1alpha1.ReasonFinished, message)
		if isNew {
			s.Events = append(s.Events, events.Event{Warning: true, Reason: v1alpha1.ReasonFinished, Note: message})
		}
		return reconciler.ErrDone
	}
	message := fmt.Sprintf("%s %s has ended, and is not run again", s.Desired.GetKind(), s.Desired.GetName())
	s.SetCondition(v1alpha1.Synced, metav1.ConditionTrue, v1alpha1.ReasonFinished, message)
	ended := s.Desired.DeepCopy()
	ended.Object["status"] = last
	ready := policies.ReadinessOf(ended, "")
	if ready.IsReady() {
		ready.Message = message
	}
	s.SetCondition(v1alpha1.Ready, ready.Status, ready.Reason, ready.Message)
	return reconciler.ErrDone
}
