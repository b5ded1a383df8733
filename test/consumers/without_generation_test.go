package consumers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// statesWithoutGeneration are states of kinds that report no observed generation.
var statesWithoutGeneration = map[string]kindStates{
	"PersistentVolumeClaim": {
		object: `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], volumeName: workload.crossplane.io/remote, resources: {requests: {storage: 1Gi}}}}`,
		statuses: map[string]string{
			"Bound":   `{phase: Bound, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}`,
			"Pending": `{phase: Pending}`,
			"Lost":    `{phase: Lost}`,
			"Resizes": `{phase: Bound, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, conditions: [{type: Resizing, status: "True", lastTransitionTime: "2026-08-01T12:00:00Z"}]}`,
		},
	},
	"HorizontalPodAutoscaler": {
		object: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`,
		statuses: map[string]string{
			"Active":    `{currentReplicas: 2, desiredReplicas: 2, currentMetrics: null, conditions: [{type: AbleToScale, status: "True", lastTransitionTime: "2026-08-01T12:00:00Z"}, {type: ScalingActive, status: "True", lastTransitionTime: "2026-08-01T12:00:00Z"}]}`,
			"NoMetrics": `{currentReplicas: 2, desiredReplicas: 0, currentMetrics: null, conditions: [{type: ScalingActive, status: "False", reason: FailedGetResourceMetric, lastTransitionTime: "2026-08-01T12:00:00Z"}]}`,
		},
	},
	"Ingress": {
		object: `{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {ingressClassName: remote.workload.crossplane.io, defaultBackend: {service: {name: web, port: {number: 80}}}}}`,
		statuses: map[string]string{
			"Address":   `{loadBalancer: {ingress: [{ip: 203.0.113.7}]}}`,
			"NoAddress": `{loadBalancer: {}}`,
		},
	},
}

// TestKindsWithoutGeneration compares the answers of consumers on the hub and on the
// target, also while the target is away.
func TestKindsWithoutGeneration(t *testing.T) {
	unreachable := metav1.Condition{Type: v1alpha1.TargetReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable}
	for name, tc := range statesWithoutGeneration {
		native := &unstructured.Unstructured{Object: fromYAML(t, tc.object)}
		native.SetNamespace(namespace)
		native.SetName("web")
		kind := kindOf(t, native)
		target, err := kinds.Project(kind, native)
		if err != nil {
			t.Fatal(err)
		}
		for state, status := range tc.statuses {
			t.Run(name+state, func(t *testing.T) {
				target := target.DeepCopy()
				target.Object["status"] = fromYAML(t, status)
				onTarget := check(t, target)
				for problem, problems := range map[string][]metav1.Condition{"": nil, "away": kinds.Problems([]metav1.Condition{unreachable})} {
					hub := native.DeepCopy()
					hub.Object["status"] = kind.Reflect(native, kinds.Observation{Status: fromYAML(t, status), Problems: problems})
					if diff := cmp.Diff(onTarget, check(t, hub)); diff != "" {
						t.Errorf("the answers differ %s, -target +hub:\n%s\nstatus: %v", problem, diff, hub.Object["status"])
					}
				}
			})
		}
	}
}
