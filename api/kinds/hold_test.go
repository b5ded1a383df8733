package kinds

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/kinds/fields"
)

// read returns the object a YAML text stands for, and nil for an empty text.
func read(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}

// patch applies a patch as the API server does.
func patch(t testing.TB, object *unstructured.Unstructured, p fields.Patch) *unstructured.Unstructured {
	t.Helper()
	before, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if len(p) == 0 {
		return object.DeepCopy()
	}
	after, err := decoded.Apply(before)
	if err != nil {
		t.Fatalf("applying %s: %v", encoded, err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(after); err != nil {
		t.Fatal(err)
	}
	return out
}

// admit returns the object after the webhook, called twice, as the API server
// may.
func admit(t testing.TB, k Kind, object, old *unstructured.Unstructured, by Author) (*unstructured.Unstructured, error) {
	t.Helper()
	first, err := Hold(k, object.DeepCopy(), copied(old), by)
	if err != nil {
		return nil, err
	}
	held := patch(t, object, first)
	second, err := Hold(k, held.DeepCopy(), copied(old), by)
	if err != nil {
		t.Fatalf("the second time: %v", err)
	}
	if len(second) > 0 {
		t.Errorf("mutating twice is not mutating once: the second time changes %v\nin: %v", second, held.Object)
	}
	return held, nil
}

func copied(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	return object.DeepCopy()
}

type holdCase struct {
	reason      string
	old, object string
	by          Author
	want        string // the stored object; the object of the request when empty
	refused     bool
}

func testHold(t *testing.T, cases map[string]holdCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object, old := read(t, tc.object), read(t, tc.old)
			k, known := For(object.GroupVersionKind())
			if !known {
				t.Fatalf("unknown kind %s", object.GetKind())
			}
			got, err := admit(t, k, object, old, tc.by)
			if tc.refused {
				var malformed *field.Error
				if !errors.As(err, &malformed) || malformed.Field != IntentPath.String() {
					t.Errorf("%s\nwant an error about %s, got %v", tc.reason, IntentPath, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			want := read(t, tc.object)
			if tc.want != "" {
				want = read(t, tc.want)
			}
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHoldDeployment(t *testing.T) {
	const (
		local    = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {metadata: {labels: {app: web}}}}}`
		labelled = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: {app: web}}}}}`
		held     = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {}}, spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}}`
		plain    = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}}`
		waiting  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{"moving":true}'}}, spec: {template: {metadata: {labels: {app: web}}}}}`
		stopping = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{"moving":true}'}}, spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}}`
		broken   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{'}}, spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}}`
	)
	testHold(t, map[string]holdCase{
		"NotOurs":    {reason: "A Deployment without the label is not changed.", object: local},
		"Create":     {reason: "A new Deployment is held.", object: labelled, want: plain},
		"Bare":       {reason: "Missing metadata of the Pod template is added.", object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {spec: {}}}}`, want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {}}}}`},
		"NullLabels": {reason: "Labels of the Pod template may be null.", object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: null}}}}`, want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}}}}`},
		"FieldOfTomorrow": {
			reason: "Fields that this version does not know are kept.",
			object: `{apiVersion: apps/v1, kind: Deployment, tomorrow: 1, metadata: {name: web, tomorrow: 2, labels: {workload.crossplane.io/schedule: remote}}, spec: {tomorrow: 3, template: {tomorrow: 4, metadata: {tomorrow: 5, labels: {app: web}}}}}`,
			want:   `{apiVersion: apps/v1, kind: Deployment, tomorrow: 1, metadata: {name: web, tomorrow: 2, labels: {workload.crossplane.io/schedule: remote}}, spec: {tomorrow: 3, template: {tomorrow: 4, metadata: {tomorrow: 5, labels: {app: web, workload.crossplane.io/schedule: remote}}}}}`,
		},
		"CreateFromExport":  {reason: "The record of a move in an exported Deployment is removed.", object: stopping, want: held},
		"Replace":           {reason: "kubectl replace drops the label of the Pod template, and the Deployment stays held.", old: plain, object: labelled, want: plain},
		"Unchanged":         {reason: "A held Deployment does not change.", old: plain, object: plain},
		"Label":             {reason: "A Deployment that runs on the hub is not held until it is available on the target.", old: local, object: labelled, want: waiting},
		"LabelByTemplate":   {reason: "A user cannot hold a Deployment. The label on the Pod template would stop the Pods.", old: local, object: plain, want: waiting},
		"EditWhileMoving":   {reason: "An edit does not hold a Deployment that moves.", old: waiting, object: waiting},
		"ReplaceWhileMove":  {reason: "An edit that drops the record does not end the move.", old: waiting, object: labelled, want: waiting},
		"StopByUser":        {reason: "A user cannot hold a Deployment that moves.", old: waiting, object: stopping, want: waiting},
		"StopByPortico":     {reason: "Portico holds the Deployment when it is available on the target.", old: waiting, object: stopping, by: Portico},
		"EditWhileStopping": {reason: "An edit does not end the hold during a move.", old: stopping, object: labelled, want: stopping},
		"MovedByPortico":    {reason: "Portico ends the move.", old: stopping, object: plain, by: Portico},
		"Release":           {reason: "A Deployment without the label is released.", old: stopping, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {workload.crossplane.io/intent: '{"moving":true}'}}, spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}}`, want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {}}, spec: {template: {metadata: {labels: {app: web}}}}}`},
		"Broken":            {reason: "Without a valid record it is unknown whether the Deployment moves.", old: broken, object: broken, refused: true},
		"PutRight":          {reason: "The removal of an invalid record is allowed.", old: broken, object: plain},
		"ReleaseBroken":     {reason: "The removal of the label is allowed with an invalid record.", old: broken, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {workload.crossplane.io/intent: '{'}}, spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}}`, want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {}}, spec: {template: {metadata: {labels: {app: web}}}}}`},
	})
}

func TestHoldDaemonSet(t *testing.T) {
	const (
		local    = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web}, spec: {template: {metadata: {labels: {app: web}}, spec: {a: b}}}}`
		labelled = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: {app: web}}, spec: {a: b}}}}`
		held     = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}, spec: {a: b, nodeName: remote.workload.crossplane.io}}}}`
		waiting  = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{"moving":true}'}}, spec: {template: {metadata: {labels: {app: web}}, spec: {a: b}}}}`
		named    = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}, spec: {nodeName: mine}}}}`
	)
	testHold(t, map[string]holdCase{
		"Create":   {reason: "A new DaemonSet selects no node.", object: labelled, want: held},
		"Apply":    {reason: "An update without the hold is held.", old: held, object: labelled, want: held},
		"Label":    {reason: "A DaemonSet on the hub runs until that of the target is available.", old: local, object: labelled, want: waiting},
		"Hold":     {reason: "Intake holds it then.", old: waiting, object: held, by: Portico},
		"Release":  {reason: "A DaemonSet without the label runs on the hub.", old: held, object: `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web}, spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}, spec: {a: b, nodeName: remote.workload.crossplane.io}}}}`, want: local},
		"NodeName": {reason: "The name of a node that a user gave is kept; the label denies the Pods.", object: named},
	})
}

func TestHoldStatefulSet(t *testing.T) {
	const (
		labelled = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {spec: {}}, volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: log, labels: {a: b}}}]}}`
		held     = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {}}, volumeClaimTemplates: [{metadata: {name: data, labels: {workload.crossplane.io/schedule: remote}}}, {metadata: {name: log, labels: {a: b, workload.crossplane.io/schedule: remote}}}]}}`
		// old was made before Portico was installed.
		old = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, labels: {workload.crossplane.io/schedule: remote}}, spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {}}, volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: log, labels: {a: b}}}]}}`
	)
	testHold(t, map[string]holdCase{
		"Create": {reason: "The Pods and the claims of a new StatefulSet are denied.", object: labelled, want: held},
		"Apply":  {reason: "Claim templates are immutable, so an update has the stored label.", old: held, object: labelled, want: held},
		"Stored": {reason: "Nor does an update get a label that the stored one lacks.", old: old, object: labelled, want: old},
	})
}

func TestHoldPodDisruptionBudget(t *testing.T) {
	testHold(t, map[string]holdCase{
		"Create": {
			reason: "It selects no Pod that runs on the hub.",
			object: `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {selector: {matchLabels: {app: web}}}}`,
			want:   `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {selector: {matchLabels: {app: web, workload.crossplane.io/schedule: remote}}}}`,
		},
		"All": {
			reason: "An empty selector selects every Pod.",
			object: `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {selector: {}}}`,
			want:   `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {selector: {matchLabels: {workload.crossplane.io/schedule: remote}}}}`,
		},
		"None": {
			reason: "No selector selects none.",
			object: `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {minAvailable: 1}}`,
		},
	})
}

// TestControlled leaves the ReplicaSets of Deployments alone.
func TestControlled(t *testing.T) {
	for name, text := range map[string]string{
		"Controller": `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {workload.crossplane.io/schedule: remote}, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: a, controller: true}]}, spec: {replicas: 2}}`,
		"Orphan":     `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {workload.crossplane.io/schedule: remote, pod-template-hash: "1"}}, spec: {replicas: 2}}`,
	} {
		object := read(t, text)
		held, err := admit(t, ReplicaSet{}, object, nil, Anyone)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(object.Object, held.Object); diff != "" || IsRemote(object) {
			t.Errorf("%s: a ReplicaSet of a Deployment is not sent; IsRemote %t (-want +got):\n%s", name, IsRemote(object), diff)
		}
		if len(Pin(object)) == 0 {
			t.Errorf("%s: its replicas are pinned", name)
		}
	}
}
