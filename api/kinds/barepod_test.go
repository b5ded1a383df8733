package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portico-io/portico/api/kinds/fields"
)

const (
	podLocal    = `{apiVersion: v1, kind: Pod, metadata: {name: test}, spec: {containers: [{name: test}]}}`
	podLabelled = `{apiVersion: v1, kind: Pod, metadata: {name: test, labels: {workload.crossplane.io/schedule: remote}}, spec: {containers: [{name: test}]}}`
	podHeld     = `{apiVersion: v1, kind: Pod, metadata: {name: test, labels: {workload.crossplane.io/schedule: remote}}, spec: {schedulingGates: [{name: workload.crossplane.io/remote}], containers: [{name: test}]}}`
	podReturns  = `{apiVersion: v1, kind: Pod, metadata: {name: test}, spec: {schedulingGates: [{name: workload.crossplane.io/remote}], containers: [{name: test}]}}`
	podOnNode   = `{apiVersion: v1, kind: Pod, metadata: {name: test, labels: {workload.crossplane.io/schedule: remote}}, spec: {nodeName: hub-1, containers: [{name: test}]}}`
	podOwned    = `{apiVersion: v1, kind: Pod, metadata: {name: test, labels: {workload.crossplane.io/schedule: remote}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: a, controller: true}]}, spec: {containers: [{name: test}]}}`
)

func TestHoldPod(t *testing.T) {
	testHold(t, map[string]holdCase{
		"Local":  {reason: "A Pod without the label is not changed.", object: podLocal},
		"Create": {reason: "The hub's scheduler leaves a new Pod alone.", object: podLabelled, want: podHeld},
		"Gated": {reason: "The gates of others remain.",
			object: `{apiVersion: v1, kind: Pod, metadata: {generateName: test-, labels: {workload.crossplane.io/schedule: remote}}, spec: {schedulingGates: [{name: kueue.x-k8s.io/admission}]}}`,
			want:   `{apiVersion: v1, kind: Pod, metadata: {generateName: test-, labels: {workload.crossplane.io/schedule: remote}}, spec: {schedulingGates: [{name: kueue.x-k8s.io/admission}, {name: workload.crossplane.io/remote}]}}`},
		"Held":   {reason: "A Pod that was exported from a hub is held already.", object: podHeld},
		"OnNode": {reason: "A gate would be refused; validation says why.", object: podOnNode},
		"Owned":  {reason: "The Pod of a controller is denied.", object: podOwned},
		"Label":  {reason: "Gates cannot be added.", old: podLocal, object: podLabelled},
		"Return": {reason: "Intake removes the gate.", old: podHeld, object: podReturns},
	})
}

func TestValidatePod(t *testing.T) {
	label, gates := schedulePath.String(), "spec.schedulingGates"
	volumes := `{apiVersion: v1, kind: Pod, metadata: {name: test, labels: {workload.crossplane.io/schedule: remote}}, spec: {schedulingGates: [{name: workload.crossplane.io/remote}], volumes: [{name: a, emptyDir: {}}, {name: b, ephemeral: {}}], resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]}}`
	testValidate(t, map[string]validateCase{
		"Local":      {reason: "Portico says nothing about other Pods.", object: podLocal},
		"Create":     {reason: "Admission held it.", object: podHeld},
		"NotHeld":    {reason: "A Pod that the hub runs is not sent.", object: podLabelled, want: []string{gates}},
		"OnNode":     {reason: "The node is one of the hub.", object: podOnNode, want: []string{"spec.nodeName"}},
		"Label":      {reason: "A Pod that runs on the hub does not move.", old: podLocal, object: podLabelled, want: []string{label}},
		"Return":     {reason: "Without the label it returns.", old: podHeld, object: podReturns},
		"Ungate":     {reason: "Two Pods would run.", old: podHeld, object: podLabelled, want: []string{gates}},
		"UngateBoth": {reason: "The one on the target still runs.", old: podHeld, object: podLocal, want: []string{gates}},
		"Wrong":      {reason: "A Pod that was wrong already may be changed.", old: podLabelled, object: podLabelled},
		"Claims":     {reason: "The hub would provide storage and devices.", object: volumes, want: []string{"spec.volumes[1].ephemeral", "spec.resourceClaims[0].resourceClaimTemplateName"}},
		"OldClaims":  {reason: "Volumes of a Pod do not change.", old: volumes, object: volumes},
	})
}

func TestProjectPod(t *testing.T) {
	testProject(t, map[string]projectCase{
		"Admitted": {
			reason: "What the admission of the hub set is not sent.",
			native: `
apiVersion: v1
kind: Pod
metadata: {name: test, namespace: shop, generateName: te, generation: 1, labels: {app: test, workload.crossplane.io/schedule: remote}}
spec:
  containers:
  - name: test
    image: busybox
    volumeMounts:
    - {mountPath: /var/run/secrets/kubernetes.io/serviceaccount, name: kube-api-access-n7hqk, readOnly: true}
  - name: side
    image: busybox
    volumeMounts:
    - {mountPath: /data, name: data}
    - {mountPath: /var/run/secrets/kubernetes.io/serviceaccount, name: kube-api-access-n7hqk, readOnly: true}
  dnsPolicy: ClusterFirst
  preemptionPolicy: PreemptLowerPriority
  priority: 0
  restartPolicy: Never
  schedulingGates: [{name: workload.crossplane.io/remote}]
  serviceAccount: default
  serviceAccountName: default
  tolerations:
  - {effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 300}
  - {effect: NoExecute, key: node.kubernetes.io/unreachable, operator: Exists, tolerationSeconds: 300}
  volumes:
  - {name: data, emptyDir: {}}
  - name: kube-api-access-n7hqk
    projected: {defaultMode: 420, sources: [{serviceAccountToken: {expirationSeconds: 3607, path: token}}, {configMap: {name: kube-root-ca.crt}}]}
status: {phase: Pending}`,
			want: `
apiVersion: v1
kind: Pod
metadata: {name: test, namespace: shop, labels: {app: test}}
spec:
  containers:
  - {name: test, image: busybox}
  - name: side
    image: busybox
    volumeMounts: [{mountPath: /data, name: data}]
  dnsPolicy: ClusterFirst
  restartPolicy: Never
  serviceAccountName: default
  volumes: [{name: data, emptyDir: {}}]`,
		},
		"Users": {
			reason: "The gates, tolerations and token volumes of the user are sent.",
			native: `
apiVersion: v1
kind: Pod
metadata: {name: test, namespace: shop}
spec:
  automountServiceAccountToken: false
  schedulingGates: [{name: kueue.x-k8s.io/admission}, {name: workload.crossplane.io/remote}]
  tolerations:
  - {key: dedicated, operator: Exists}
  - {effect: NoExecute, key: node.kubernetes.io/unreachable, operator: Exists, tolerationSeconds: 60}
  - {effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 300}
  volumes:
  - name: kube-api-access-mine
    projected: {sources: [{serviceAccountToken: {path: token}}]}`,
			want: `
apiVersion: v1
kind: Pod
metadata: {name: test, namespace: shop}
spec:
  automountServiceAccountToken: false
  schedulingGates: [{name: kueue.x-k8s.io/admission}]
  tolerations:
  - {key: dedicated, operator: Exists}
  - {effect: NoExecute, key: node.kubernetes.io/unreachable, operator: Exists, tolerationSeconds: 60}
  volumes:
  - name: kube-api-access-mine
    projected: {sources: [{serviceAccountToken: {path: token}}]}`,
		},
	})
}

func TestReflectPod(t *testing.T) {
	const (
		pending   = `{phase: Pending, qosClass: BestEffort, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}`
		target    = `{phase: Running, qosClass: Burstable, observedGeneration: 7, podIP: 10.1.2.3, podIPs: [{ip: 10.1.2.3}], hostIP: 10.0.0.1, hostIPs: [{ip: 10.0.0.1}], nominatedNodeName: n, startTime: "2026-08-01T12:00:00Z", resourceClaimStatuses: [{name: gpu}], conditions: [{type: PodScheduled, status: "True", observedGeneration: 7}, {type: Ready, status: "True"}], containerStatuses: [{name: test, ready: true, restartCount: 2, allocatedResourcesStatus: [{name: gpu}], allocatedResources: {cpu: 99}, resources: {requests: {cpu: 99}}, state: {running: {}}}]}`
		running   = `{phase: Running, qosClass: BestEffort, startTime: "2026-08-01T12:00:00Z", conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "True"}], containerStatuses: [{name: test, ready: true, restartCount: 2, state: {running: {}}}]}`
		ended     = `{phase: Running, containerStatuses: [{name: test, state: {terminated: {exitCode: 0}}}, {name: side, state: {running: {}}}]}`
		crashed   = `{phase: Running, containerStatuses: [{name: test, state: {terminated: {exitCode: 1}}}]}`
		restarted = `{phase: Running, containerStatuses: [{name: test, state: {running: {}}}, {name: side, state: {running: {}}}]}`
		withoutIt = `{phase: Running, containerStatuses: [{name: side, state: {running: {}}}]}`
	)
	for name, tc := range map[string]struct{ reason, restartPolicy, hub, target, want string }{
		"Unseen":    {reason: "The status is the hub's until the target has one.", hub: pending, want: pending},
		"Running":   {reason: "The status is the target's, without its addresses and the generation that it counts.", hub: pending, target: target, want: running},
		"Same":      {reason: "The status is stable.", hub: running, target: target, want: running},
		"Restarted": {reason: "The hub forgets a container that has ended before it shows that it runs again.", restartPolicy: "Never", hub: ended, target: restarted, want: withoutIt},
		"Forgotten": {reason: "Then it shows that.", restartPolicy: "Never", hub: withoutIt, target: restarted, want: restarted},
		"Always":    {reason: "A container may restart.", restartPolicy: "Always", hub: ended, target: restarted, want: restarted},
		"OnFailure": {reason: "A container may restart after a failure.", restartPolicy: "OnFailure", hub: crashed, target: restarted, want: restarted},
		"Success":   {reason: "It may not restart after a success.", restartPolicy: "OnFailure", hub: ended, target: restarted, want: withoutIt},
	} {
		t.Run(name, func(t *testing.T) {
			native := read(t, podHeld)
			fields.Child(native.Object, "spec")["restartPolicy"] = tc.restartPolicy
			native.Object["status"] = status(t, tc.hub)
			got := Pod{}.Reflect(native, Observation{Status: status(t, tc.target)})
			if diff := cmp.Diff(status(t, tc.want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRetainTolerations(t *testing.T) {
	pod := func(tolerations string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: test}, spec: {` + tolerations + `}}`
	}
	for name, tc := range map[string]struct{ reason, desired, observed, want string }{
		"Absent": {reason: "A new Pod gets those of the user.", desired: pod(`tolerations: [{key: a}]`), want: pod(`tolerations: [{key: a}]`)},
		"Added": {reason: "The target refuses to remove those that it added.", desired: pod(`tolerations: [{key: a}]`), observed: pod(`tolerations: [{key: a}, {key: b}]`),
			want: pod(`tolerations: [{key: a}, {key: b}]`)},
		"Changed": {reason: "The user added one.", desired: pod(`tolerations: [{key: a}, {key: c}]`), observed: pod(`tolerations: [{key: a}, {key: b}]`),
			want: pod(`tolerations: [{key: a}, {key: c}, {key: b}]`)},
		"None": {reason: "Portico owns no list that the user left out.", desired: pod(``), observed: pod(`tolerations: [{key: b}]`), want: pod(``)},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, tc.desired)
			Retain(got, read(t, tc.observed))
			if diff := cmp.Diff(read(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSetReturned(t *testing.T) {
	native := read(t, `{apiVersion: v1, kind: Pod, metadata: {name: test}, spec: {schedulingGates: [{name: workload.crossplane.io/remote}, {name: other}]}, status: {phase: Running, qosClass: BestEffort, containerStatuses: [{name: test}]}}`)
	want := read(t, `{apiVersion: v1, kind: Pod, metadata: {name: test}, spec: {schedulingGates: [{name: other}]}, status: {phase: Pending, qosClass: BestEffort}}`)
	if diff := cmp.Diff(want.Object, Pod{}.SetReturned(native).Object); diff != "" {
		t.Errorf("a Pod that returns is a new Pod (-want +got):\n%s", diff)
	}
}
