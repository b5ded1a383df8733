package kinds

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

var noon = metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))

func problem(kind, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "because", LastTransitionTime: noon}
}

func TestReflect(t *testing.T) {
	unreachable := problem(v1alpha1.TargetReachable, v1alpha1.ReasonUnreachable)
	for name, tc := range map[string]struct {
		reason     string
		native     string
		remote     string // the status on the target; none when empty
		generation int64
		revision   string // the newest ControllerRevision on the hub
		problems   []metav1.Condition
		want       string
	}{
		"Deployment": {
			reason:     "Counts and conditions are copied from the target, the generation is translated, and unknown fields are kept.",
			native:     `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}, status: {observedGeneration: 3, replicas: 9, conditions: [{type: Available, status: "False"}]}}`,
			remote:     `{observedGeneration: 7, replicas: 3, readyReplicas: 2, tomorrow: {a: 1}, conditions: [{type: Available, status: "True"}]}`,
			generation: 4,
			want:       `{observedGeneration: 4, replicas: 3, readyReplicas: 2, tomorrow: {a: 1}, conditions: [{type: Available, status: "True"}]}`,
		},
		"CollisionCount": {
			reason: "The collision count of the hub is kept, because the API server does not let it decrease.",
			native: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}, status: {collisionCount: 2}}`,
			remote: `{collisionCount: 1}`,
			want:   `{collisionCount: 2}`,
		},
		"CollisionCountOfTarget": {
			reason: "The collision count of the target is not copied.",
			native: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}}`,
			remote: `{collisionCount: 1}`,
			want:   `{}`,
		},
		"ClaimUnknown": {
			reason: "A claim is not bound before its target says so.",
			native: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound, capacity: {storage: 1Gi}}}`,
			want:   `{phase: Pending}`,
		},
		"Claim": {
			reason: "Phase, capacity and access modes are those of the target.",
			native: `{apiVersion: v1, kind: PersistentVolumeClaim}`,
			remote: `{phase: Bound, capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], conditions: [{type: FileSystemResizePending, status: "True"}]}`,
			want:   `{phase: Bound, capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], conditions: [{type: FileSystemResizePending, status: "True"}]}`,
		},
		"Autoscaler": {
			reason: "Replicas, metrics and conditions are those of the target.",
			native: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {currentReplicas: 0, conditions: [{type: ScalingActive, status: "False"}]}}`,
			remote: `{currentReplicas: 3, desiredReplicas: 4, currentMetrics: [{type: Resource}], conditions: [{type: ScalingActive, status: "True"}]}`,
			want:   `{currentReplicas: 3, desiredReplicas: 4, currentMetrics: [{type: Resource}], conditions: [{type: ScalingActive, status: "True"}]}`,
		},
		"AutoscalerUnknown": {
			reason: "The API server requires the desired replicas, and stores that there are no metrics.",
			native: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}`,
			want:   `{desiredReplicas: 0, currentMetrics: null}`,
		},
		"NothingObserved": {
			reason: "Before the target has observed a generation, the status has none.",
			native: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}, status: {observedGeneration: 4, replicas: 3}}`,
			want:   `{}`,
		},
		"FromTheFuture": {
			reason:     "The observed generation is at most the hub's generation.",
			native:     `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}}`,
			generation: 5,
			want:       `{observedGeneration: 4}`,
		},
		"Problem": {
			reason:     "Conditions of Portico are added to the last counts.",
			native:     `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}}`,
			remote:     `{replicas: 3, conditions: [{type: Available, status: "True"}]}`,
			generation: 4,
			problems:   []metav1.Condition{unreachable},
			want:       `{observedGeneration: 4, replicas: 3, conditions: [{type: Available, status: "True"}, {type: TargetReachable, status: "False", reason: Unreachable, message: because, lastTransitionTime: "2026-08-01T12:00:00Z", lastUpdateTime: "2026-08-01T12:00:00Z"}]}`,
		},
		"ConditionOfOurName": {
			reason:   "A condition of the target with the type of one of Portico's is omitted, because types are unique.",
			native:   `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}}`,
			remote:   `{conditions: [{type: TargetReachable, status: "True"}, {type: Mine, status: "True"}]}`,
			problems: []metav1.Condition{unreachable},
			want:     `{conditions: [{type: Mine, status: "True"}, {type: TargetReachable, status: "False", reason: Unreachable, message: because, lastTransitionTime: "2026-08-01T12:00:00Z", lastUpdateTime: "2026-08-01T12:00:00Z"}]}`,
		},
		"CountsDisagree": {
			reason: "If two counts contradict, the lower one is written. A zero is omitted.",
			native: `{apiVersion: apps/v1, kind: Deployment}`,
			remote: `{replicas: 3, updatedReplicas: 4, availableReplicas: 2}`,
			want:   `{replicas: 3, updatedReplicas: 3}`,
		},
		"ReplicaSet": {
			reason:     "Each count is at most the number of replicas, and a status always has that number.",
			native:     `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 2}, status: {observedGeneration: 1, replicas: 0, conditions: [{type: ReplicaFailure, status: "True"}]}}`,
			remote:     `{observedGeneration: 5, replicas: 2, fullyLabeledReplicas: 3, readyReplicas: 2, availableReplicas: 2, terminatingReplicas: 1}`,
			generation: 2,
			problems:   []metav1.Condition{unreachable},
			want:       `{observedGeneration: 2, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2, terminatingReplicas: 1, conditions: [{type: TargetReachable, status: "False", reason: Unreachable, message: because, lastTransitionTime: "2026-08-01T12:00:00Z"}]}`,
		},
		"ReplicationController": {
			reason: "Before the target was observed there are no replicas.",
			native: `{apiVersion: v1, kind: ReplicationController, metadata: {generation: 2}, status: {replicas: 2}}`,
			want:   `{replicas: 0}`,
		},
		"DaemonSet": {
			reason:     "All counters are the target's.",
			native:     `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, status: {collisionCount: 1, desiredNumberScheduled: 0, numberReady: 0}}`,
			remote:     `{observedGeneration: 5, collisionCount: 3, currentNumberScheduled: 3, desiredNumberScheduled: 3, numberAvailable: 2, numberMisscheduled: 0, numberReady: 2, numberUnavailable: 1, updatedNumberScheduled: 3}`,
			generation: 2,
			want:       `{observedGeneration: 2, collisionCount: 1, currentNumberScheduled: 3, desiredNumberScheduled: 3, numberAvailable: 2, numberMisscheduled: 0, numberReady: 2, numberUnavailable: 1, updatedNumberScheduled: 3}`,
		},
		"StatefulSet": {
			reason:     "The revision of a finished rollout is the newest on the hub.",
			native:     `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, status: {currentRevision: web-1, updateRevision: web-1}}`,
			remote:     `{observedGeneration: 5, replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, availableReplicas: 2, currentRevision: web-a, updateRevision: web-a}`,
			generation: 2,
			revision:   "web-2",
			want:       `{observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, availableReplicas: 2, currentRevision: web-2, updateRevision: web-2}`,
		},
		"StatefulSetRollsOut": {
			reason:     "During a rollout the current revision is that of the last.",
			native:     `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, status: {currentRevision: web-1, updateRevision: web-1}}`,
			remote:     `{observedGeneration: 5, replicas: 2, availableReplicas: 2, readyReplicas: 2, currentReplicas: 1, updatedReplicas: 1, currentRevision: web-a, updateRevision: web-b}`,
			generation: 2,
			revision:   "web-2",
			want:       `{observedGeneration: 2, replicas: 2, availableReplicas: 2, readyReplicas: 2, currentReplicas: 1, updatedReplicas: 1, currentRevision: web-1, updateRevision: web-2}`,
		},
		"StatefulSetNotObserved": {
			reason:     "Revisions of the target are of the last template until it has observed the new one.",
			native:     `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 3}, status: {currentRevision: web-1, updateRevision: web-1}}`,
			remote:     `{observedGeneration: 5, replicas: 2, availableReplicas: 0, currentRevision: web-a, updateRevision: web-a}`,
			generation: 2,
			revision:   "web-2",
			want:       `{observedGeneration: 2, replicas: 2, availableReplicas: 0, currentRevision: web-1, updateRevision: web-1}`,
		},
		"StatefulSetRevisionMissing": {
			reason:     "The hub's controller has not made the revision of a rollout. kubectl must not call the rollout complete.",
			native:     `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, status: {currentRevision: web-1, updateRevision: web-1}}`,
			remote:     `{observedGeneration: 5, replicas: 2, availableReplicas: 2, readyReplicas: 2, currentReplicas: 1, updatedReplicas: 1, currentRevision: web-a, updateRevision: web-b}`,
			generation: 2,
			want:       `{observedGeneration: 2, replicas: 2, availableReplicas: 2, readyReplicas: 2, currentReplicas: 1, updatedReplicas: 1, currentRevision: web-1, updateRevision: web-b}`,
		},
		"StatefulSetRolledOutRevisionMissing": {
			reason:     "The target completed the rollout before the hub's controller has made its revision.",
			native:     `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, status: {currentRevision: web-1, updateRevision: web-b}}`,
			remote:     `{observedGeneration: 5, replicas: 2, availableReplicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, currentRevision: web-b, updateRevision: web-b}`,
			generation: 2,
			want:       `{observedGeneration: 2, replicas: 2, availableReplicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, currentRevision: web-1, updateRevision: web-1}`,
		},
		"StatefulSetUnseen": {
			reason:   "Without a status of the target there is no revision.",
			native:   `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}}`,
			revision: "web-1",
			want:     `{replicas: 0, availableReplicas: 0}`,
		},
		"PodDisruptionBudget": {
			reason:     "The names of Pods on the target mean nothing on the hub.",
			native:     `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 2}, status: {disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0}}`,
			remote:     `{observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2, disruptedPods: {web-1: "2026-08-01T12:00:00Z"}, conditions: [{type: DisruptionAllowed, status: "True"}]}`,
			generation: 2,
			want:       `{observedGeneration: 2, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2, conditions: [{type: DisruptionAllowed, status: "True"}]}`,
		},
		"Balancer": {
			reason: "The target's load balancer is copied. The ipMode becomes Proxy, and a hostname has none.",
			native: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			remote: `{loadBalancer: {ingress: [{ip: 203.0.113.7, ports: [{port: 80, protocol: TCP, error: example.org/Broken}]}, {ip: "2001:db8::1", ipMode: Proxy}, {hostname: a.example.com}]}}`,
			want:   `{loadBalancer: {ingress: [{ip: 203.0.113.7, ipMode: Proxy, ports: [{port: 80, protocol: TCP, error: example.org/Broken}]}, {ip: "2001:db8::1", ipMode: Proxy}, {hostname: a.example.com}]}}`,
		},
		"BalancerInvalid": {
			reason: "Entries that the hub would reject are omitted.",
			native: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			remote: `{loadBalancer: {ingress: [3, {}, {ip: 1.2.3}, {ip: 010.0.0.1}, {ip: "fe80::1%eth0"}, {ip: 7}, {hostname: 203.0.113.9}, {hostname: Not_A_Name}, {ipMode: VIP},
				{ip: bad, hostname: a.example.com, ipMode: VIP, other: x, ports: [x, {port: 0, protocol: TCP}, {port: 80, protocol: ICMP}, {port: 81, protocol: UDP, error: "two words"}]}]}}`,
			want: `{loadBalancer: {ingress: [{hostname: a.example.com, ports: [{port: 81, protocol: UDP}]}]}}`,
		},
		"BalancerAllInvalid": {
			reason: "Without an address the list is omitted, because an empty one counts as an address for Helm 3.",
			native: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			remote: `{loadBalancer: {ingress: [{hostname: ""}]}}`,
			want:   `{loadBalancer: {}}`,
		},
		"NoBalancer": {
			reason: "The status of a Service without a load balancer is not copied.",
			native: `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`,
			remote: `{loadBalancer: {ingress: [{ip: 203.0.113.7}]}, conditions: [{type: Mine, status: "True"}]}`,
			want:   `{loadBalancer: {}}`,
		},
		"ConditionsOfTheHub": {
			reason:   "Conditions of other writers on the hub are kept.",
			native:   `{apiVersion: v1, kind: Service, status: {conditions: [{type: Mine, status: "True"}, {type: Synced, status: "False"}]}}`,
			problems: []metav1.Condition{unreachable},
			want:     `{loadBalancer: {}, conditions: [{type: Mine, status: "True"}, {type: TargetReachable, status: "False", reason: Unreachable, message: because, lastTransitionTime: "2026-08-01T12:00:00Z"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			native := read(t, tc.native)
			seen := Observation{HubGeneration: tc.generation, HubRevision: tc.revision, Problems: tc.problems}
			if tc.remote != "" {
				seen.Status = read(t, "{kind: Status, status: "+tc.remote+"}").Object["status"].(map[string]any)
			}
			inNative, inStatus := native.DeepCopy(), (&unstructured.Unstructured{Object: seen.Status}).DeepCopy()
			k, _ := For(native.GroupVersionKind())
			got := k.Reflect(native, seen)
			if diff := cmp.Diff(read(t, "{kind: Status, status: "+tc.want+"}").Object["status"], any(got)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(inNative.Object, native.Object); diff != "" {
				t.Errorf("reflecting changed the native object:\n%s", diff)
			}
			if diff := cmp.Diff(inStatus.Object, seen.Status); diff != "" {
				t.Errorf("reflecting changed what was seen:\n%s", diff)
			}
			native.Object["status"] = got
			if diff := cmp.Diff(got, k.Reflect(native, seen)); diff != "" {
				t.Errorf("reflecting what is reflected changes it:\n%s", diff)
			}
		})
	}
}

// TestLoadBalancers makes the statuses that test/kube/proxy gives to kube-proxy.
func TestLoadBalancers(t *testing.T) {
	data, err := os.ReadFile("testdata/load_balancers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Reason      string
		Target, Hub map[string]any
	}
	if err := yaml.UnmarshalStrict(data, &cases); err != nil {
		t.Fatal(err)
	}
	native := read(t, `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`)
	for _, tc := range cases {
		got := Service{}.Reflect(native, Observation{Status: map[string]any{"loadBalancer": tc.Target}})
		if diff := cmp.Diff(map[string]any{"loadBalancer": tc.Hub}, got); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", tc.Reason, diff)
		}
	}
}

// TestLoadBalancerBounds: a target decides neither how much the hub stores nor
// how long it is.
func TestLoadBalancerBounds(t *testing.T) {
	var ports, ingress []any
	for i := range 1000 {
		ports = append(ports, map[string]any{"port": int64(i + 1), "protocol": "TCP", "error": strings.Repeat("x", 1000)})
	}
	for range 1000 {
		ingress = append(ingress, map[string]any{"hostname": strings.Repeat("a.", 150) + "a"},
			map[string]any{"ip": "203.0.113.7", "hostname": strings.Repeat("a", 10000), "ports": ports})
	}
	native := read(t, `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`)
	got := Service{}.Reflect(native, Observation{Status: map[string]any{"loadBalancer": map[string]any{"ingress": ingress}}})
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if kept := got["loadBalancer"].(map[string]any)["ingress"].([]any); len(kept) != maxIngress || len(data) > 128<<10 {
		t.Errorf("%d entries of %d bytes are reflected, want %d of at most 128 KiB", len(kept), len(data), maxIngress)
	}
}

func TestProblems(t *testing.T) {
	synced := metav1.Condition{Type: v1alpha1.Synced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied}
	refused := problem(v1alpha1.Synced, v1alpha1.ReasonRefused)
	homeless := problem(v1alpha1.Scheduled, v1alpha1.ReasonNoMatchingTarget)
	for name, tc := range map[string]struct {
		reason     string
		conditions []metav1.Condition
		want       []metav1.Condition
	}{
		"None":       {reason: "Without problems there are no conditions.", conditions: []metav1.Condition{synced}},
		"InOrder":    {reason: "Problems have a fixed order.", conditions: []metav1.Condition{refused, homeless}, want: []metav1.Condition{homeless, refused}},
		"OnTheWay":   {reason: "A condition during progress is no problem.", conditions: []metav1.Condition{problem(v1alpha1.Synced, v1alpha1.ReasonApplying), problem(v1alpha1.TargetReachable, v1alpha1.ReasonConnecting), problem(v1alpha1.Scheduled, v1alpha1.ReasonNotScheduled)}},
		"NotReady":   {reason: "The condition Ready is not copied, because the object has its own.", conditions: []metav1.Condition{problem(v1alpha1.Ready, v1alpha1.ReasonFailed)}},
		"NobodyElse": {reason: "Conditions of other writers are not copied.", conditions: []metav1.Condition{problem("Mine", "Broken")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Problems(tc.conditions)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObservedHubGeneration(t *testing.T) {
	const stamp = v1alpha1.HubGenerationAnnotation
	deployment := func(stamped string, generation, observed string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: ` + generation + `, annotations: {` + stamp + `: "` + stamped + `"}}, status: {observedGeneration: ` + observed + `}}`
	}
	for name, tc := range map[string]struct {
		reason            string
		projected, inSpec string // stamps on the resource and on its template
		remote            string
		want              int64
	}{
		"Observed":      {reason: "The target has observed the sent generation.", projected: "4", inSpec: "4", remote: deployment("4", "7", "7"), want: 4},
		"NotObserved":   {reason: "The target has not observed the sent generation.", projected: "4", inSpec: "4", remote: deployment("4", "8", "7")},
		"NotSent":       {reason: "The target has observed an earlier generation.", projected: "4", inSpec: "4", remote: deployment("3", "7", "7"), want: 3},
		"NothingToSend": {reason: "Later generations changed nothing that is sent, so they are observed too.", projected: "6", inSpec: "4", remote: deployment("4", "7", "7"), want: 6},
		"NoStamp":       {reason: "The generation is unknown without the annotation.", projected: "4", inSpec: "4", remote: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 7}, status: {observedGeneration: 7}}`},
		"BadStamp":      {reason: "The generation is unknown with an invalid annotation.", projected: "4", inSpec: "4", remote: deployment("four", "7", "7")},
		"NoStatus":      {reason: "A Deployment without a status has observed nothing.", projected: "1", inSpec: "1", remote: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1, annotations: {` + stamp + `: "1"}}}`},
		"OtherKind":     {reason: "An unknown kind with an observed generation must have observed its own.", projected: "2", inSpec: "2", remote: `{apiVersion: example.com/v1, kind: Database, metadata: {generation: 7, annotations: {` + stamp + `: "2"}}, status: {observedGeneration: 6}}`},
		"SilentKind":    {reason: "An unknown kind without an observed generation has observed its own.", projected: "2", inSpec: "2", remote: `{apiVersion: example.com/v1, kind: Database, metadata: {generation: 7, annotations: {` + stamp + `: "2"}}}`, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			resource, template := &metav1.ObjectMeta{}, &metav1.ObjectMeta{}
			metav1.SetMetaDataAnnotation(resource, stamp, tc.projected)
			metav1.SetMetaDataAnnotation(template, stamp, tc.inSpec)
			if got := ObservedHubGeneration(resource, template, read(t, tc.remote)); got != tc.want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

func TestPin(t *testing.T) {
	for name, tc := range map[string]struct{ reason, object, want string }{
		"Shadow":  {reason: "A labelled ReplicaSet has 0 replicas.", object: `{kind: ReplicaSet, metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {replicas: 3}}`, want: `{kind: ReplicaSet, metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {replicas: 0}}`},
		"Default": {reason: "The default of replicas is 1, and is set to 0.", object: `{kind: ReplicaSet, metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {}}`, want: `{kind: ReplicaSet, metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {replicas: 0}}`},
		"LetGo":   {reason: "A ReplicaSet without the label may have replicas.", object: `{kind: ReplicaSet, metadata: {}, spec: {replicas: 3}}`, want: `{kind: ReplicaSet, metadata: {}, spec: {replicas: 3}}`},
	} {
		t.Run(name, func(t *testing.T) {
			object := read(t, tc.object)
			got := patch(t, object, Pin(object.DeepCopy()))
			if diff := cmp.Diff(read(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if found2 := Pin(got); len(found2) > 0 {
				t.Errorf("pinning twice is not pinning once: %v", found2)
			}
		})
	}
}

func TestShadowStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		remote appsv1.DeploymentStatus
		newest bool
		want   appsv1.ReplicaSetStatus
	}{
		"Older":    {reason: "An older ReplicaSet has no Pods.", remote: appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}, want: appsv1.ReplicaSetStatus{ObservedGeneration: 2}},
		"Done":     {reason: "If all Pods are new, all ready Pods are new.", remote: appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1}, newest: true, want: appsv1.ReplicaSetStatus{ObservedGeneration: 2, Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1}},
		"Halfway":  {reason: "The ready Pods may be old ones.", remote: appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 2}, newest: true, want: appsv1.ReplicaSetStatus{ObservedGeneration: 2, Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 1}},
		"Disagree": {reason: "Counts that contradict are corrected, because the hub would reject them.", remote: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 5}, newest: true, want: appsv1.ReplicaSetStatus{ObservedGeneration: 2, Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, HeldReplicaSetStatus(tc.remote, 2, tc.newest)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNewestShadow(t *testing.T) {
	rs := func(name, revision string) metav1.Object {
		return &metav1.ObjectMeta{Name: name, Annotations: map[string]string{"deployment.kubernetes.io/revision": revision}}
	}
	for name, tc := range map[string]struct {
		reason string
		given  []metav1.Object
		want   string
	}{
		"None":    {reason: "The Deployment has no ReplicaSet yet."},
		"Numbers": {reason: "Revisions are compared as numbers.", given: []metav1.Object{rs("a", "9"), rs("b", "10"), rs("c", "2")}, want: "b"},
		"Unsaid":  {reason: "A ReplicaSet without a revision is the oldest.", given: []metav1.Object{&metav1.ObjectMeta{Name: "a"}, rs("b", "1")}, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if newest := NewestReplicaSet(tc.given); newest != nil {
				got = newest.GetName()
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestRevisionOf finds the revision of a template among those of other templates.
func TestRevisionOf(t *testing.T) {
	revision := func(number, image string) unstructured.Unstructured {
		return *read(t, `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: web-`+number+`}, revision: `+number+`,
			data: {spec: {template: {$patch: replace, metadata: {creationTimestamp: null, labels: {app: web}}, spec: {terminationGracePeriodSeconds: 30, containers: [{name: web, image: "`+image+`"}]}}}}}`)
	}
	native := read(t, `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, template: {metadata: {labels: {app: web}}, spec: {containers: [{image: "nginx:1", name: web}], terminationGracePeriodSeconds: 30}}}}`)
	for name, tc := range map[string]struct {
		reason    string
		revisions []unstructured.Unstructured
		want      string
	}{
		"None":   {reason: "The hub's controller has made none."},
		"Newer":  {"The cache of StatefulSets is behind.", []unstructured.Unstructured{revision("1", "nginx:1"), revision("2", "nginx:2")}, "web-1"},
		"Older":  {"The cache of ControllerRevisions is behind.", []unstructured.Unstructured{revision("1", "nginx:2")}, ""},
		"Undone": {"kubectl rollout undo makes an old revision the newest.", []unstructured.Unstructured{revision("2", "nginx:2"), revision("3", "nginx:1")}, "web-3"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RevisionOf(native, tc.revisions); got != tc.want {
				t.Errorf("%s got %q, want %q", tc.reason, got, tc.want)
			}
			for i := range tc.revisions {
				StripRevision(&tc.revisions[i])
				StripRevision(&tc.revisions[i]) // again, as a cache may
			}
			if got := RevisionOf(native, tc.revisions); got != tc.want {
				t.Errorf("stripped: %s got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
