package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

const (
	jobLocal    = `{apiVersion: batch/v1, kind: Job, metadata: {name: load}, spec: {template: {}}}`
	jobLabelled = `{apiVersion: batch/v1, kind: Job, metadata: {name: load, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {}}}`
	jobHeld     = `{apiVersion: batch/v1, kind: Job, metadata: {name: load, labels: {workload.crossplane.io/schedule: remote}}, spec: {managedBy: workload.crossplane.io/remote, template: {}}}`
	jobUnheld   = `{apiVersion: batch/v1, kind: Job, metadata: {name: load}, spec: {managedBy: workload.crossplane.io/remote, template: {}}}`
	jobOthers   = `{apiVersion: batch/v1, kind: Job, metadata: {name: load, labels: {workload.crossplane.io/schedule: remote}}, spec: {managedBy: kueue.x-k8s.io/multikueue, template: {}}}`
)

func TestHoldJob(t *testing.T) {
	testHold(t, map[string]holdCase{
		"Local":  {reason: "A Job without the label is not changed.", object: jobLocal},
		"Create": {reason: "The hub's controller leaves a new Job alone.", object: jobLabelled, want: jobHeld},
		"Held":   {reason: "A Job that was exported from a hub is held already.", object: jobHeld},
		"Others": {reason: "A value that the user wrote is not changed; validation refuses it.", object: jobOthers},
		"Label":  {reason: "spec.managedBy is immutable.", old: jobLocal, object: jobLabelled},
		"Update": {reason: "An update of a held Job changes nothing.", old: jobHeld, object: jobHeld},
		"Return": {reason: "spec.managedBy is immutable.", old: jobHeld, object: jobUnheld},
	})
}

func TestValidateJob(t *testing.T) {
	label, managedBy := schedulePath.String(), "spec.managedBy"
	testValidate(t, map[string]validateCase{
		"Local":       {reason: "Portico says nothing about other Jobs.", object: jobLocal},
		"Create":      {reason: "Admission held it.", object: jobHeld},
		"NotHeld":     {reason: "A Job that the hub runs is not sent.", object: jobLabelled, want: []string{label}},
		"Others":      {reason: "The Job is another controller's.", object: jobOthers, want: []string{managedBy}},
		"Label":       {reason: "A Job that runs on the hub does not move.", old: jobLocal, object: jobLabelled, want: []string{label}},
		"Return":      {reason: "The hub would never run it.", old: jobHeld, object: jobUnheld, want: []string{label}},
		"Update":      {reason: "A held Job may be changed.", old: jobHeld, object: jobHeld},
		"Wrong":       {reason: "A Job that was wrong already may be changed.", old: jobLabelled, object: jobLabelled},
		"PutRight":    {reason: "Without the label it is the hub's.", old: jobLabelled, object: jobLocal},
		"HeldByUsers": {reason: "Nothing runs a Job that the user held without the label.", old: jobUnheld, object: jobHeld},
	})
}

type validateCase struct {
	reason      string
	old, object string
	want        []string // the fields
}

func testValidate(t *testing.T, cases map[string]validateCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object, old := read(t, tc.object), read(t, tc.old)
			k, known := For(object.GroupVersionKind())
			if !known {
				t.Fatalf("unknown kind %s", object.GetKind())
			}
			var got []string
			for _, err := range Validate(k, object, old) {
				got = append(got, err.Field)
				if err.Type != field.ErrorTypeForbidden && err.BadValue == nil || err.Detail == "" {
					t.Errorf("the error names no way out: %v", err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProjectJob(t *testing.T) {
	testProject(t, map[string]projectCase{
		"Generated": {
			reason: "The target generates the selector, and the hub deletes a finished Job.",
			native: `
apiVersion: batch/v1
kind: Job
metadata: {name: load, namespace: shop, uid: 1f6d9e3c, generation: 1, labels: {app: load, workload.crossplane.io/schedule: remote}}
spec:
  backoffLimit: 6
  completionMode: NonIndexed
  completions: 1
  managedBy: workload.crossplane.io/remote
  manualSelector: false
  parallelism: 1
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: 1f6d9e3c}}
  suspend: false
  ttlSecondsAfterFinished: 60
  template:
    metadata:
      creationTimestamp: null
      labels: {batch.kubernetes.io/controller-uid: 1f6d9e3c, batch.kubernetes.io/job-name: load, controller-uid: 1f6d9e3c, job-name: load}
    spec: {restartPolicy: Never, containers: [{name: load, image: load}]}
status: {active: 1}`,
			want: `
apiVersion: batch/v1
kind: Job
metadata: {name: load, namespace: shop, labels: {app: load}}
spec:
  backoffLimit: 6
  completionMode: NonIndexed
  completions: 1
  parallelism: 1
  template:
    spec: {restartPolicy: Never, containers: [{name: load, image: load}]}`,
		},
		"Labels": {
			reason: "Labels of the user are sent, and what the user selects besides.",
			native: `
apiVersion: batch/v1
kind: Job
metadata: {name: load, namespace: shop}
spec:
  selector: {matchLabels: {app: load, batch.kubernetes.io/controller-uid: 1f6d9e3c}}
  template: {metadata: {labels: {app: load, batch.kubernetes.io/controller-uid: 1f6d9e3c, workload.crossplane.io/schedule: remote}}}`,
			want: `
apiVersion: batch/v1
kind: Job
metadata: {name: load, namespace: shop}
spec:
  selector: {matchLabels: {app: load}}
  template: {metadata: {labels: {app: load}}}`,
		},
		"Suspended": {
			reason: "The user suspended the Job.",
			native: `{apiVersion: batch/v1, kind: Job, metadata: {name: load, namespace: shop}, spec: {suspend: true}}`,
			want:   `{apiVersion: batch/v1, kind: Job, metadata: {name: load, namespace: shop}, spec: {suspend: true}}`,
		},
		"Manual": {
			reason: "A manual selector is the user's.",
			native: `
apiVersion: batch/v1
kind: Job
metadata: {name: load, namespace: shop}
spec:
  manualSelector: true
  selector: {matchLabels: {job-name: load}}
  template: {metadata: {labels: {job-name: load}}}`,
			want: `
apiVersion: batch/v1
kind: Job
metadata: {name: load, namespace: shop}
spec:
  manualSelector: true
  selector: {matchLabels: {job-name: load}}
  template: {metadata: {labels: {job-name: load}}}`,
		},
	})
}

type projectCase struct{ reason, native, want string }

func testProject(t *testing.T, cases map[string]projectCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			native := read(t, tc.native)
			before := native.DeepCopy()
			k, _ := For(native.GroupVersionKind())
			got, err := Project(k, native)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before.Object, native.Object); diff != "" {
				t.Errorf("the native object was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestReflectJob is about the values; that the API server accepts them is tested on a
// real one, in test/consumers.
func TestReflectJob(t *testing.T) {
	const (
		running   = `{active: 1, ready: 1, terminating: 0, startTime: "2026-08-01T12:00:00Z", uncountedTerminatedPods: {}}`
		deciding  = `{active: 1, ready: 1, terminating: 1, failed: 2, startTime: "2026-08-01T12:00:00Z", conditions: [{type: FailureTarget, status: "True", reason: BackoffLimitExceeded, lastTransitionTime: "2026-08-01T12:01:00Z"}]}`
		failed    = `{ready: 0, terminating: 0, failed: 2, startTime: "2026-08-01T12:00:00Z", conditions: [{type: FailureTarget, status: "True", reason: BackoffLimitExceeded, lastTransitionTime: "2026-08-01T12:01:00Z"}, {type: Failed, status: "True", reason: BackoffLimitExceeded, lastTransitionTime: "2026-08-01T12:01:00Z"}]}`
		complete  = `{ready: 0, succeeded: 1, startTime: "2026-08-01T12:00:00Z", completionTime: "2026-08-01T12:01:00Z", conditions: [{type: SuccessCriteriaMet, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}, {type: Complete, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}]}`
		suspended = `{startTime: "2026-08-01T12:00:00Z", conditions: [{type: Suspended, status: "True"}]}`
	)
	away := []metav1.Condition{{Type: v1alpha1.TargetReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: "target eu-1 does not answer",
		LastTransitionTime: metav1.Date(2026, 8, 1, 12, 5, 0, 0, metav1.Now().UTC().Location())}}
	const awayCondition = `{type: TargetReachable, status: "False", reason: Unreachable, message: target eu-1 does not answer, lastTransitionTime: "2026-08-01T12:05:00Z"}`
	for name, tc := range map[string]struct {
		reason      string
		spec        string
		hub, target string
		problems    []metav1.Condition
		want        string
	}{
		"First":    {reason: "The whole status is the target's.", target: running, want: running},
		"Unseen":   {reason: "Counters do not fall while nothing is seen.", hub: running, want: running},
		"Away":     {reason: "The status stays, and the reason is added.", hub: running, problems: away, want: `{active: 1, ready: 1, terminating: 0, startTime: "2026-08-01T12:00:00Z", uncountedTerminatedPods: {}, conditions: [` + awayCondition + `]}`},
		"Back":     {reason: "The reason goes.", hub: `{conditions: [` + awayCondition + `]}`, target: running, want: running},
		"Complete": {reason: "The end comes in one write.", hub: running, target: complete, want: complete},
		"Frozen":   {reason: "A finished Job does not change, and no target is missed.", hub: complete, target: running, problems: away, want: complete},
		"Old": {reason: "A Job controller before 1.31 writes the end alone.", hub: running,
			target: `{succeeded: 1, startTime: "2026-08-01T12:00:00Z", completionTime: "2026-08-01T12:01:00Z", conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}]}`,
			want:   `{succeeded: 1, startTime: "2026-08-01T12:00:00Z", completionTime: "2026-08-01T12:01:00Z", conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}, {type: SuccessCriteriaMet, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}]}`},
		"OldFailed": {reason: "Its failure, too.", target: `{failed: 1, conditions: [{type: Failed, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}]}`,
			want: `{failed: 1, startTime: "2026-08-01T12:01:00Z", conditions: [{type: Failed, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}, {type: FailureTarget, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}]}`},
		"Moved": {reason: "On another target the Job starts again: its counters do not fall, and it started when it first started.",
			hub: `{failed: 2, succeeded: 3, startTime: "2026-08-01T12:00:00Z"}`, target: `{active: 1, succeeded: 1, startTime: "2026-08-01T13:00:00Z"}`,
			want: `{active: 1, failed: 2, succeeded: 3, startTime: "2026-08-01T12:00:00Z"}`},
		"MovedClock": {reason: "The clock of the other target is behind.",
			hub: `{startTime: "2026-08-01T12:00:00Z"}`, target: `{succeeded: 1, startTime: "2026-08-01T11:00:00Z", completionTime: "2026-08-01T11:01:00Z", conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`,
			want: `{succeeded: 1, startTime: "2026-08-01T12:00:00Z", completionTime: "2026-08-01T12:00:00Z", conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`},
		"Deciding": {reason: "Pods may end after the end is decided.", hub: running, target: deciding, want: deciding},
		"Again":    {reason: "A Job whose end was decided does not start again.", hub: deciding, target: running, want: failed},
		"Elastic": {reason: "An indexed Job may be scaled down.", spec: `{completionMode: Indexed, completions: 1, parallelism: 1}`,
			hub: `{succeeded: 3}`, target: `{succeeded: 1, completedIndexes: "0"}`, want: `{succeeded: 1, completedIndexes: "0"}`},
		"Suspended": {reason: "A suspended Job starts anew.", spec: `{suspend: true}`, hub: running, target: suspended, want: suspended},
		"Resumed": {reason: "A resumed Job starts now.", spec: `{suspend: false}`, hub: suspended,
			target: `{active: 1, startTime: "2026-08-01T13:00:00Z", conditions: [{type: Suspended, status: "False"}]}`,
			want:   `{active: 1, startTime: "2026-08-01T13:00:00Z", conditions: [{type: Suspended, status: "False"}]}`},
		"Ready": {reason: "The API server takes no more ready than active Pods.", target: `{active: 1, ready: 2}`, want: `{active: 1, ready: 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			native := read(t, jobHeld)
			if tc.spec != "" {
				native.Object["spec"] = read(t, `{apiVersion: v1, kind: X, x: `+tc.spec+`}`).Object["x"]
			}
			if tc.hub != "" {
				native.Object["status"] = status(t, tc.hub)
			}
			got := Job{}.Reflect(native, Observation{Status: status(t, tc.target), Problems: tc.problems})
			if diff := cmp.Diff(status(t, tc.want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			native.Object["status"] = got
			second := Job{}.Reflect(native, Observation{Status: status(t, tc.target), Problems: tc.problems})
			if diff := cmp.Diff(got, second); diff != "" {
				t.Errorf("the status is not stable (-first +second):\n%s", diff)
			}
		})
	}
}

// status returns the status of a YAML text, and nil for an empty text.
func status(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	out, _, err := unstructured.NestedMap(read(t, `{apiVersion: v1, kind: X, status: `+text+`}`).Object, "status")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFinishJob(t *testing.T) {
	for name, tc := range map[string]struct{ reason, status, want string }{
		"Running": {reason: "A Job that runs has no last status.", status: `{active: 1}`},
		"Deciding": {reason: "The end is known before the last Pod has ended.", status: `{active: 1, ready: 1, terminating: 1, uncountedTerminatedPods: {succeeded: [a]}, succeeded: 1, startTime: "2026-08-01T12:00:00Z", conditions: [{type: SuccessCriteriaMet, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}]}`,
			want: `{ready: 0, terminating: 0, uncountedTerminatedPods: {}, succeeded: 1, startTime: "2026-08-01T12:00:00Z", completionTime: "2026-08-01T12:01:00Z", conditions: [{type: SuccessCriteriaMet, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}, {type: Complete, status: "True", lastTransitionTime: "2026-08-01T12:01:00Z"}]}`},
		"False": {reason: "A condition that was taken back is none.", status: `{conditions: [{type: FailureTarget, status: "False"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, decided := Job{}.Finish(status(t, tc.status))
			if diff := cmp.Diff(status(t, tc.want), got); diff != "" || decided != (tc.want != "") {
				t.Errorf("%s decided: %t (-want +got):\n%s", tc.reason, decided, diff)
			}
		})
	}
}
