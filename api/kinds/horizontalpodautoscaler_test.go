package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAutoscaledReplicas(t *testing.T) {
	const scaled = `desiredReplicas: 4, lastScaleTime: "2026-08-01T12:00:00Z"`
	for name, tc := range map[string]struct {
		reason, status string
		want           int64
		ok             bool
	}{
		"Scaled":      {reason: "The autoscaler has set four replicas.", status: `{` + scaled + `, conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False"}]}`, want: 4, ok: true},
		"NeverScaled": {reason: "The replicas are those that were sent.", status: `{desiredReplicas: 4}`, want: 4},
		"NoMetrics":   {reason: "A new autoscaler without metrics desires zero, and has not scaled.", status: `{desiredReplicas: 0}`},
		"Disabled":    {reason: "An object with no replicas is not scaled.", status: `{desiredReplicas: 0, lastScaleTime: "2026-08-01T12:00:00Z"}`},
		"Unable":      {reason: "The desired number was not set.", status: `{` + scaled + `, conditions: [{type: AbleToScale, status: "False"}]}`},
		"Malformed":   {reason: "A target may report anything.", status: `{desiredReplicas: many, lastScaleTime: 7, conditions: {}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := AutoscaledReplicas(read(t, `{kind: A, status: `+tc.status+`}`).Object["status"].(map[string]any))
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("%s\ngot %d, %t", tc.reason, got, ok)
			}
		})
	}
}

func TestScaleTargetOf(t *testing.T) {
	autoscaler := func(apiVersion, kind string) string {
		return `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {apiVersion: ` + apiVersion + `, kind: ` + kind + `, name: web}}}`
	}
	for name, tc := range map[string]struct {
		object   string
		scalable Kind
	}{
		"Deployment": {object: autoscaler("apps/v1", "Deployment"), scalable: Deployment{}},
		"NoReplicas": {object: autoscaler("apps/v1", "DaemonSet")},
		"Custom":     {object: autoscaler("example.org/v1", "Deployment")},
		"OtherKind":  {object: `{apiVersion: v1, kind: Service, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			target, _ := ScaleTargetOf(read(t, tc.object))
			kind, scalable := target.Scalable()
			if scalable != (tc.scalable != nil) || scalable && kind != tc.scalable {
				t.Errorf("kind %v, scalable %t", kind, scalable)
			}
			var want []Needed
			if tc.scalable != nil {
				want = []Needed{{Kind: tc.scalable, Name: "web", Field: "spec.scaleTargetRef.name"}}
			}
			if diff := cmp.Diff(want, NeededBy(read(t, tc.object)), cmpopts.EquateComparable(Deployment{})); diff != "" {
				t.Errorf("needed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNeededClaims(t *testing.T) {
	deployment := read(t, `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [], volumes: [{emptyDir: {}}, {persistentVolumeClaim: {claimName: data}}]}}}}`)
	want := []Needed{{Kind: PersistentVolumeClaim{}, Name: "data", Field: "spec.template.spec.volumes[1].persistentVolumeClaim.claimName"}}
	if diff := cmp.Diff(want, NeededBy(deployment)); diff != "" {
		t.Errorf("claims of Pods (-want +got):\n%s", diff)
	}
	database := read(t, `{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {containers: [], volumes: [
		{name: data, persistentVolumeClaim: {claimName: data}}, {name: log, persistentVolumeClaim: {claimName: log}}]}}}}`)
	want = []Needed{{Kind: PersistentVolumeClaim{}, Name: "log", Field: "spec.template.spec.volumes[1].persistentVolumeClaim.claimName"}}
	if diff := cmp.Diff(want, NeededBy(database)); diff != "" {
		t.Errorf("a claim template replaces the volume of its name (-want +got):\n%s", diff)
	}
}
