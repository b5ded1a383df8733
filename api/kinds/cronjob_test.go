package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cronJob returns a CronJob in YAML, with more metadata, spec, and metadata of the
// template of its Jobs.
func cronJob(metadata, spec, template string) string {
	if template != "" {
		template = "metadata: {" + template + "}, "
	}
	return `{apiVersion: batch/v1, kind: CronJob, metadata: {name: backup` + metadata + `}, spec: {schedule: "* * * * *"` + spec + `, jobTemplate: {` + template + `spec: {}}}}`
}

func TestHoldCronJob(t *testing.T) {
	const (
		remote     = `labels: {workload.crossplane.io/schedule: remote}`
		shop       = `labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}`
		prod       = `labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/target-selector: env=prod}`
		onTarget   = `, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/schedule-on: target}`
		running    = `, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/schedule-on: target, workload.crossplane.io/intent: "{}"}`
		suspended  = `, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/schedule-on: target, workload.crossplane.io/intent: '{"suspended":true}'}`
		onHub      = `, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/schedule-on: hub}`
		wasRunning = `, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/schedule-on: hub, workload.crossplane.io/intent: "{}"}`
		wasOff     = `, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/schedule-on: hub, workload.crossplane.io/intent: '{"suspended":true}'}`
	)
	testHold(t, map[string]holdCase{
		"Local":       {reason: "A CronJob without the label is not changed.", object: cronJob("", "", "")},
		"Create":      {reason: "Its Jobs are sent.", object: cronJob(", "+remote, "", ""), want: cronJob(", "+remote, "", remote)},
		"Update":      {reason: "An update changes nothing.", old: cronJob(", "+remote, "", remote), object: cronJob(", "+remote, "", remote)},
		"JobsStay":    {reason: "A value that the user wrote is not changed.", object: cronJob(", "+remote, "", `labels: {workload.crossplane.io/schedule: local}`)},
		"Application": {reason: "The Jobs are in its application.", object: cronJob(", "+shop, "", ""), want: cronJob(", "+shop, "", shop)},
		"OtherApplication": {reason: "The application of the Jobs follows.", old: cronJob(", "+shop, "", shop),
			object: cronJob(`, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: other}`, "", shop),
			want:   cronJob(`, labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: other}`, "", `labels: {workload.crossplane.io/schedule: remote, workload.crossplane.io/application: other}`)},
		"NoApplication":  {reason: "It is removed as well.", old: cronJob(", "+shop, "", shop), object: cronJob(", "+remote, "", shop), want: cronJob(", "+remote, "", remote)},
		"OwnApplication": {reason: "The user gave the Jobs another one.", old: cronJob(", "+remote, "", shop), object: cronJob(", "+remote, "", shop)},
		"Selector":       {reason: "The Jobs go where the CronJob says.", object: cronJob(", "+prod, "", ""), want: cronJob(", "+prod, "", prod)},
		"Release":        {reason: "Without the label the Jobs run here.", old: cronJob(", "+shop, "", shop), object: cronJob(`, labels: {workload.crossplane.io/application: shop}`, "", shop), want: cronJob(`, labels: {workload.crossplane.io/application: shop}`, "", "")},
		"ReleaseOwn":     {reason: "The user's labels of the Jobs remain.", old: cronJob(", "+remote, "", shop), object: cronJob("", "", shop), want: cronJob("", "", `labels: {workload.crossplane.io/application: shop}`)},

		"OnTarget":        {reason: "The hub makes no Jobs.", object: cronJob(onTarget, ", suspend: false", remote), want: cronJob(running, ", suspend: true", remote)},
		"OnTargetUnset":   {reason: "The user left the field out.", object: cronJob(onTarget, "", remote), want: cronJob(running, ", suspend: true", remote)},
		"OnTargetOff":     {reason: "The user suspended it.", object: cronJob(onTarget, ", suspend: true", remote), want: cronJob(suspended, ", suspend: true", remote)},
		"OnTargetUpdate":  {reason: "The suspension is Portico's.", old: cronJob(running, ", suspend: true", remote), object: cronJob(running, ", suspend: true", remote)},
		"OnTargetReplace": {reason: "A manifest that leaves the field out resumes it.", old: cronJob(suspended, ", suspend: true", remote), object: cronJob(onTarget, ", suspend: false", remote), want: cronJob(running, ", suspend: true", remote)},
		"OnTargetResume":  {reason: "The user resumes it.", old: cronJob(suspended, ", suspend: true", remote), object: cronJob(suspended, ", suspend: false", remote), want: cronJob(running, ", suspend: true", remote)},
		"ToTarget":        {reason: "A suspended CronJob stays suspended.", old: cronJob(onHub, ", suspend: true", remote), object: cronJob(onTarget, ", suspend: true", remote), want: cronJob(suspended, ", suspend: true", remote)},
		"ToHub":           {reason: "The hub makes the Jobs again.", old: cronJob(running, ", suspend: true", remote), object: cronJob(wasRunning, ", suspend: true", remote), want: cronJob(onHub, ", suspend: false", remote)},
		"ToHubOff":        {reason: "A suspended CronJob stays suspended.", old: cronJob(suspended, ", suspend: true", remote), object: cronJob(wasOff, ", suspend: true", remote), want: cronJob(onHub, ", suspend: true", remote)},
		"Home": {reason: "Without the label it is as the user wrote it.", old: cronJob(running, ", suspend: true", remote),
			object: cronJob(`, annotations: {workload.crossplane.io/intent: "{}"}`, ", suspend: true", remote), want: cronJob(`, annotations: {}`, ", suspend: false", "")},
		"Broken": {reason: "Nobody can say whether it is suspended.", object: cronJob(`, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/schedule-on: target, workload.crossplane.io/intent: "{"}`, ", suspend: true", remote), refused: true},
	})
}

func TestValidateCronJob(t *testing.T) {
	label := `, labels: {workload.crossplane.io/schedule: remote}`
	on := func(where string) string {
		return label + `, annotations: {workload.crossplane.io/schedule-on: ` + where + `}`
	}
	managed := `{apiVersion: batch/v1, kind: CronJob, metadata: {name: backup` + label + `}, spec: {jobTemplate: {spec: {managedBy: a.b/c}}}}`
	testValidate(t, map[string]validateCase{
		"Remote":  {reason: "The hub makes the Jobs.", object: cronJob(label, "", "")},
		"Hub":     {reason: "The default may be written.", object: cronJob(on("hub"), "", "")},
		"Target":  {reason: "The target makes them.", object: cronJob(on("target"), "", "")},
		"Other":   {reason: "A misspelt value is refused.", object: cronJob(on("Target"), "", ""), want: []string{"metadata.annotations[workload.crossplane.io/schedule-on]"}},
		"Managed": {reason: "Each Job would be refused.", object: managed, want: []string{"spec.jobTemplate.spec.managedBy"}},
	})
}

func TestSentByCronJob(t *testing.T) {
	native := read(t, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: backup, namespace: shop, labels: {workload.crossplane.io/schedule: remote}},
  spec: {jobTemplate: {metadata: {labels: {app: backup, workload.crossplane.io/schedule: remote}}, spec: {backoffLimit: 1}}}}`)
	kind, sent := Sent(CronJob{}, native)
	want := read(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: backup-00000000, namespace: shop, labels: {app: backup, workload.crossplane.io/schedule: remote}}, spec: {backoffLimit: 1}}`)
	if diff := cmp.Diff(want.Object, sent.Object); diff != "" || kind != (Job{}) || IsSent(CronJob{}, native) {
		t.Errorf("the hub makes a Job (-want +got):\n%s", diff)
	}
	native.SetAnnotations(map[string]string{"workload.crossplane.io/schedule-on": "target"})
	if kind, sent := Sent(CronJob{}, native); kind != (CronJob{}) || sent != native || !IsSent(CronJob{}, native) {
		t.Errorf("the CronJob itself is to be sent, and %s %s is", sent.GetKind(), sent.GetName())
	}
}

func TestProjectCronJob(t *testing.T) {
	native := func(intent string) string {
		return `
apiVersion: batch/v1
kind: CronJob
metadata:
  name: backup
  namespace: shop
  labels: {app: backup, workload.crossplane.io/schedule: remote}
  annotations: {workload.crossplane.io/schedule-on: target, workload.crossplane.io/target-selector: env=prod, workload.crossplane.io/intent: '` + intent + `'}
spec:
  schedule: "@daily"
  suspend: true
  jobTemplate:
    metadata:
      creationTimestamp: null
      labels: {app: backup, workload.crossplane.io/schedule: remote}
      annotations: {workload.crossplane.io/target-selector: env=prod}
    spec:
      ttlSecondsAfterFinished: 60
      template: {metadata: {creationTimestamp: null}, spec: {restartPolicy: Never}}
status: {lastScheduleTime: "2026-08-01T12:00:00Z"}`
	}
	want := func(suspend string) string {
		return `
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup, namespace: shop, labels: {app: backup}}
spec:
  schedule: "@daily"` + suspend + `
  jobTemplate:
    metadata: {labels: {app: backup}}
    spec:
      ttlSecondsAfterFinished: 60
      template: {spec: {restartPolicy: Never}}`
	}
	testProject(t, map[string]projectCase{
		"Running":   {reason: "The Jobs of the target are the target's own.", native: native(`{}`), want: want("")},
		"Suspended": {reason: "The user suspended it.", native: native(`{"suspended":true}`), want: want("\n  suspend: true")},
	})
}

func TestReflectCronJob(t *testing.T) {
	native := read(t, cronJob("", "", ""))
	native.Object["status"] = status(t, `{lastScheduleTime: "2026-08-01T12:00:00Z"}`)
	got := CronJob{}.Reflect(native, Observation{Status: status(t, `{active: [{name: backup-1}], lastScheduleTime: "2026-08-01T12:01:00Z", lastSuccessfulTime: "2026-08-01T12:01:05Z"}`)})
	if diff := cmp.Diff(status(t, `{lastScheduleTime: "2026-08-01T12:01:00Z", lastSuccessfulTime: "2026-08-01T12:01:05Z"}`), got); diff != "" {
		t.Errorf("the times are the target's, and no Job is missed here (-want +got):\n%s", diff)
	}
}
