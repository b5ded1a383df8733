package consumers

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/kinds"
)

// kindStates are the states of a kind on a target.
type kindStates struct {
	// object is held on the hub, in generation 4.
	object string
	// statuses are the statuses that the controller on the target writes in generation 7
	// of the object there, by state.
	statuses map[string]string
	// ready are the states in which every consumer is done.
	ready []string
	// argoCDReadsConditions says that Argo CD shows an object as Degraded if a condition is
	// false, which tells that the target is away. It does not read the generation.
	argoCDReadsConditions bool
}

const template = `{metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}, spec: {containers: [{name: web, image: "nginx:1"}]}}`

var statesOfKinds = map[string]kindStates{
	"ReplicaSet": {
		object: `{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: ` + template + `}}`,
		ready:  []string{"Ready"},
		statuses: map[string]string{
			"Ready":       `{observedGeneration: 7, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2}`,
			"Progressing": `{observedGeneration: 7, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1, availableReplicas: 1}`,
			"NoneReady":   `{observedGeneration: 7, replicas: 2, fullyLabeledReplicas: 2}`,
			"Failed":      `{observedGeneration: 7, replicas: 0, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota, lastTransitionTime: "2026-08-01T12:00:00Z"}]}`,
		},
	},
	// kstatus and Helm 3 do not read the counts of this kind.
	"ReplicationController": {
		object: `{apiVersion: v1, kind: ReplicationController, spec: {replicas: 2, selector: {app: web}, template: ` + template + `}}`,
		ready:  []string{"Ready", "Progressing"},
		statuses: map[string]string{
			"Ready":       `{observedGeneration: 7, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2}`,
			"Progressing": `{observedGeneration: 7, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1, availableReplicas: 1}`,
		},
	},
	"DaemonSet": {
		object: `{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchLabels: {app: web}}, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}, template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}, spec: {nodeName: remote.workload.crossplane.io, containers: [{name: web, image: "nginx:1"}]}}}}`,
		ready:  []string{"Ready", "NoNodes"},
		statuses: map[string]string{
			"Ready":       `{observedGeneration: 7, currentNumberScheduled: 3, desiredNumberScheduled: 3, numberAvailable: 3, numberMisscheduled: 0, numberReady: 3, updatedNumberScheduled: 3}`,
			"Progressing": `{observedGeneration: 7, currentNumberScheduled: 3, desiredNumberScheduled: 3, numberAvailable: 3, numberMisscheduled: 0, numberReady: 3, updatedNumberScheduled: 1}`,
			"Degraded":    `{observedGeneration: 7, currentNumberScheduled: 3, desiredNumberScheduled: 3, numberAvailable: 1, numberMisscheduled: 0, numberReady: 1, numberUnavailable: 2, updatedNumberScheduled: 3}`,
			"NoNodes":     `{observedGeneration: 7, currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0}`,
		},
	},
	"StatefulSet": {
		object: `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, serviceName: web, selector: {matchLabels: {app: web}}, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}, template: ` + template + `}, status: {currentRevision: web-a, updateRevision: web-a}}`,
		ready:  []string{"Ready"},
		statuses: map[string]string{
			"Ready":       `{observedGeneration: 7, replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, availableReplicas: 2, currentRevision: web-b, updateRevision: web-b}`,
			"Progressing": `{observedGeneration: 7, replicas: 2, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, availableReplicas: 1, currentRevision: web-a, updateRevision: web-b}`,
			"Updated":     `{observedGeneration: 7, replicas: 2, readyReplicas: 2, currentReplicas: 0, updatedReplicas: 2, availableReplicas: 2, currentRevision: web-a, updateRevision: web-b}`,
			"Scaling":     `{observedGeneration: 7, replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, availableReplicas: 1, currentRevision: web-b, updateRevision: web-b}`,
		},
	},
	"PodDisruptionBudget": {
		object: `{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1, selector: {matchLabels: {app: web, workload.crossplane.io/schedule: remote}}}}`,
		ready:  []string{"Ready", "Minimum", "TooFew"}, argoCDReadsConditions: true,
		statuses: map[string]string{
			"Ready":   `{observedGeneration: 7, currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, expectedPods: 2, conditions: [{type: DisruptionAllowed, status: "True", reason: SufficientPods, message: "", observedGeneration: 7, lastTransitionTime: "2026-08-01T12:00:00Z"}]}`,
			"TooFew":  `{observedGeneration: 7, currentHealthy: 0, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 2, conditions: [{type: DisruptionAllowed, status: "False", reason: InsufficientPods, message: "", observedGeneration: 7, lastTransitionTime: "2026-08-01T12:00:00Z"}]}`,
			"Minimum": `{observedGeneration: 7, currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 1}`,
		},
	},
}

// answers are the answers of all consumers.
type answers struct{ Kubectl, Kstatus, Helm3, ArgoCD outcome }

func check(t *testing.T, object *unstructured.Unstructured) answers {
	t.Helper()
	return answers{kubectl(object), kstatus(t, object), helm3(t, object, nil), argoCD(t, object)}
}

func fromYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte("{kind: A, object: " + text + "}"))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return out.Object["object"].(map[string]any)
}

// TestKinds compares the answers of consumers on the hub and on the target, for each
// state of each kind.
func TestKinds(t *testing.T) {
	for name, tc := range statesOfKinds {
		native := &unstructured.Unstructured{Object: fromYAML(t, tc.object)}
		native.SetNamespace(namespace)
		native.SetName("web")
		native.SetGeneration(4)
		kind := kindOf(t, native)
		target, err := kinds.Project(kind, native)
		if err != nil {
			t.Fatal(err)
		}
		target.SetGeneration(7)
		for state, status := range tc.statuses {
			t.Run(name+state, func(t *testing.T) {
				target := target.DeepCopy()
				target.Object["status"] = fromYAML(t, status)
				seen := kinds.Observation{Status: fromYAML(t, status), HubGeneration: 4, HubRevision: "web-b"}
				hub := native.DeepCopy()
				hub.Object["status"] = kind.Reflect(native, seen)
				onTarget, onHub := check(t, target), check(t, hub)
				if diff := cmp.Diff(onTarget, onHub); diff != "" {
					t.Errorf("the answers differ, -target +hub:\n%s\nstatus: %v", diff, hub.Object["status"])
				}
				if isReady := onHub.Kstatus.State == "done" && onHub.Helm3.State == "done"; isReady != slices.Contains(tc.ready, state) {
					t.Errorf("ready: %t, in state %s: %+v", isReady, state, onHub)
				}

				away := native.DeepCopy()
				away.Object["status"] = kind.Reflect(native, kinds.Observation{Status: seen.Status, HubGeneration: 4, HubRevision: "web-b", Problems: kinds.Problems([]metav1.Condition{unreachable})})
				want := onTarget
				if tc.argoCDReadsConditions {
					want.ArgoCD = outcome{State: "Degraded", Message: "PodDisruptionBudget has Unreachable"}
				}
				if diff := cmp.Diff(want, check(t, away)); diff != "" {
					t.Errorf("the answers differ while the target is away, -target +hub:\n%s", diff)
				}
				if _, reported := kinds.WithoutProblems(away); !reported {
					t.Errorf("no condition reports that the target is away: %v", away.Object["status"])
				}

				seen.HubGeneration = 3
				hub.Object["status"] = kind.Reflect(native, seen)
				if got := kstatus(t, hub); got.State != "waiting" {
					t.Errorf("the target has not observed the hub's generation, and kstatus is %+v", got)
				}
				if got := argoCD(t, hub); !tc.argoCDReadsConditions && got.State != "Progressing" && got.State != "" {
					t.Errorf("the target has not observed the hub's generation, and Argo CD is %+v", got)
				}
			})
		}
	}
}
