package consumers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// TestOnce: each consumer has the same result for a Job or a Pod on the hub as for the
// one on the target, also while the target is unreachable.
func TestOnce(t *testing.T) {
	const (
		job  = `{apiVersion: batch/v1, kind: Job, metadata: {name: load, namespace: default, generation: 1}, spec: {completions: 1, parallelism: 1, backoffLimit: 1, template: {spec: {restartPolicy: Never}}}, status: `
		pod  = `{apiVersion: v1, kind: Pod, metadata: {name: test, namespace: default, generation: 1}, spec: {restartPolicy: Never, containers: [{name: test}]}, status: `
		cron = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: backup, namespace: default, generation: 1, annotations: {workload.crossplane.io/schedule-on: target}}, spec: {schedule: "@daily"}, status: `
	)
	away := []metav1.Condition{unreachable}
	for name, tc := range map[string]struct {
		reason                 string
		target                 string
		kstatus, helm3, argoCD string
	}{
		"JobNew":       {reason: "The Job has not started.", target: job + `{}}`, kstatus: "waiting", helm3: "waiting", argoCD: "Progressing"},
		"JobRuns":      {reason: "kstatus does not wait for the end of a Job, and Helm 3 does.", target: job + `{active: 1, ready: 1, startTime: "2026-08-01T12:00:00Z"}}`, kstatus: "done", helm3: "waiting", argoCD: "Progressing"},
		"JobComplete":  {reason: "The Job has succeeded.", target: job + `{succeeded: 1, startTime: "2026-08-01T12:00:00Z", completionTime: "2026-08-01T12:01:00Z", conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}}`, kstatus: "done", helm3: "done", argoCD: "Healthy"},
		"JobFailed":    {reason: "The Job has failed.", target: job + `{failed: 2, startTime: "2026-08-01T12:00:00Z", conditions: [{type: FailureTarget, status: "True"}, {type: Failed, status: "True"}]}}`, kstatus: "failed", helm3: "failed", argoCD: "Degraded"},
		"JobSuspended": {reason: "The Job has not started.", target: job + `{conditions: [{type: Suspended, status: "True"}]}}`, kstatus: "waiting", helm3: "waiting", argoCD: "Suspended"},
		"PodPending":   {reason: "The Pod has no node on the target.", target: pod + `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}}`, kstatus: "failed", helm3: "waiting", argoCD: "Progressing"},
		"PodRuns":      {reason: "The Pod is not ready.", target: pod + `{phase: Running, conditions: [{type: Ready, status: "False"}]}}`, kstatus: "waiting", helm3: "waiting", argoCD: "Progressing"},
		"PodReady":     {reason: "The Pod is ready. Argo CD waits for its end, because of restartPolicy.", target: pod + `{phase: Running, conditions: [{type: Ready, status: "True"}]}}`, kstatus: "done", helm3: "done", argoCD: "Progressing"},
		"PodCrashes":   {reason: "The Pod will not become ready.", target: pod + `{phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: test, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, kstatus: "failed", helm3: "waiting", argoCD: "Progressing"},
		"PodSucceeded": {reason: "The Pod has ended.", target: pod + `{phase: Succeeded, conditions: [{type: Ready, status: "False", reason: PodCompleted}]}}`, kstatus: "done", helm3: "waiting", argoCD: "Healthy"},
		"PodFailed":    {reason: "kstatus takes the end of a Pod for done.", target: pod + `{phase: Failed}}`, kstatus: "done", helm3: "waiting", argoCD: "Degraded"},
		"CronJob":      {reason: "A CronJob is always ready.", target: cron + `{lastScheduleTime: "2026-08-01T12:00:00Z", active: [{name: backup-1}]}}`, kstatus: "done", helm3: "done", argoCD: "Healthy"},
	} {
		for suffix, problems := range map[string][]metav1.Condition{"": nil, "Away": away} {
			t.Run(name+suffix, func(t *testing.T) {
				data, err := yaml.YAMLToJSON([]byte(tc.target))
				if err != nil {
					t.Fatal(err)
				}
				target := &unstructured.Unstructured{}
				if err := target.UnmarshalJSON(data); err != nil { // keeps integers
					t.Fatal(err)
				}
				hub := target.DeepCopy()
				delete(hub.Object, "status")
				hub.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
				if _, err := kinds.Hold(kindOf(t, hub), hub, nil, kinds.Anyone); err != nil {
					t.Fatal(err)
				}
				status, _, _ := unstructured.NestedMap(target.Object, "status")
				hub.Object["status"] = kindOf(t, hub).Reflect(hub, kinds.Observation{Status: status, Problems: problems})
				onTarget, onHub := check(t, target), check(t, hub)
				if name == "CronJob" { // suspended on the hub
					onTarget.ArgoCD.Message = "CronJob is Suspended"
				}
				if diff := cmp.Diff(onTarget, onHub); diff != "" {
					t.Errorf("%s (-target +hub):\n%s", tc.reason, diff)
				}
				if onHub.Kstatus.State != tc.kstatus || onHub.Helm3.State != tc.helm3 || onHub.ArgoCD.State != tc.argoCD {
					t.Errorf("%s got kstatus %v, Helm 3 %v, Argo CD %v", tc.reason, onHub.Kstatus, onHub.Helm3, onHub.ArgoCD)
				}
			})
		}
	}
}
