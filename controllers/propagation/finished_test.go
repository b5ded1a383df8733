package propagation

import (
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
)

func TestKeepFinished(t *testing.T) {
	const (
		job      = `{apiVersion: batch/v1, kind: Job, metadata: {name: load, namespace: team-a}, spec: {}}`
		pod      = `{apiVersion: v1, kind: Pod, metadata: {name: test, namespace: team-a}, spec: {}}`
		complete = `{"succeeded":1,"startTime":"2026-08-01T12:00:00Z","completionTime":"2026-08-01T12:01:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`
		deciding = `{"active":1,"failed":1,"startTime":"2026-08-01T12:00:00Z","conditions":[{"type":"FailureTarget","status":"True","lastTransitionTime":"2026-08-01T12:01:00Z"}]}`
		failed   = `{"failed":1,"startTime":"2026-08-01T12:00:00Z","conditions":[{"type":"FailureTarget","status":"True","lastTransitionTime":"2026-08-01T12:01:00Z"},{"type":"Failed","status":"True","lastTransitionTime":"2026-08-01T12:01:00Z"}]}`
	)
	for name, tc := range map[string]struct {
		reason    string
		template  string
		state     plan.State
		remote    string
		templated bool
		existed   bool   // on the target, as the resource has it
		want      string // the status, if the object is kept
		wantReady bool
	}{
		"Running":   {reason: "A Job that was deleted while it ran starts again.", template: job, state: plan.Absent, remote: `{"active":1}`},
		"New":       {reason: "A new Job starts.", template: job, state: plan.Absent},
		"There":     {reason: "A finished Job that exists is applied as ever.", template: job, state: plan.InSync, remote: complete},
		"Complete":  {reason: "A complete Job does not run again.", template: job, state: plan.Absent, remote: complete, want: complete, wantReady: true},
		"Deciding":  {reason: "The end of a Job that failed is known before its last Pod has ended.", template: job, state: plan.Absent, remote: deciding, want: failed},
		"Succeeded": {reason: "A Pod that has ended does not run again.", template: pod, state: plan.Absent, remote: `{"phase":"Succeeded"}`, want: `{"phase":"Succeeded"}`, wantReady: true},
		"Moved":     {reason: "A Pod that runs starts again on another target.", template: pod, state: plan.Absent, remote: `{"phase":"Running"}`},
		"Deleted":   {reason: "A Pod that was deleted while it ran does not run again.", template: pod, state: plan.Absent, existed: true, remote: `{"phase":"Running"}`, want: `{"phase":"Failed","reason":"DeletedOnTarget","message":"the Pod was deleted on its target, and is not created again; delete and re-create it to run it"}`},
		"JobGone":   {reason: "A Job that was deleted while it ran starts again.", template: job, state: plan.Absent, existed: true, remote: `{"active":1}`},
		"Templated": {reason: "The Job of a template may be run again.", template: job, state: plan.Absent, remote: complete, templated: true},
	} {
		t.Run(name, func(t *testing.T) {
			resource := resourceWith(t, tc.template)
			resource.Spec.TargetRef = &v1alpha1.TargetReference{Name: "new"}
			resource.Spec.LeavingTargetRef = &v1alpha1.TargetReference{Name: "old"}
			resource.Status.Target = "old"
			if tc.existed {
				resource.Status.Target, resource.Status.RemoteUID = "new", "1"
			}
			if !tc.templated {
				resource.Labels = map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
			}
			if tc.remote != "" {
				resource.Status.Remote = &apiextensionsv1.JSON{Raw: []byte(tc.remote)}
			}
			desired, err := plan.Desired(resource, testHub)
			if err != nil {
				t.Fatal(err)
			}
			s := &scope.Scope{Target: types.NamespacedName{Namespace: "team-a", Name: "new"}, Resource: resource, Before: resource.DeepCopy(), Desired: desired, State: tc.state}
			err = controllerOn(t).observer.keepFinished(t.Context(), s)
			if kept := errors.Is(err, reconciler.ErrDone); kept != (tc.want != "") || err != nil && !kept {
				t.Fatalf("%s got error %v", tc.reason, err)
			}
			if tc.want == "" {
				return
			}
			status := resource.Status
			if !fields.EqualJSON(status.Remote.Raw, []byte(tc.want)) {
				t.Errorf("%s got status %s", tc.reason, status.Remote.Raw)
			}
			synced := meta.FindStatusCondition(status.Conditions, v1alpha1.Synced)
			if status.Target != "new" || synced == nil || synced.Reason != v1alpha1.ReasonFinished || meta.IsStatusConditionTrue(status.Conditions, v1alpha1.Ready) != tc.wantReady {
				t.Errorf("the move must end: on target %s, conditions %v", status.Target, status.Conditions)
			}
		})
	}
}
