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
		problems   []metav1.Condition
		want       string
	}{
		"Deployment": {
			reason:     "Counts and conditions are the target's, the generation is translated, and unknown fields are kept.",
			native:     `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}, status: {observedGeneration: 3, replicas: 9, conditions: [{type: Available, status: "False"}]}}`,
			remote:     `{observedGeneration: 7, replicas: 3, readyReplicas: 2, tomorrow: {a: 1}, conditions: [{type: Available, status: "True"}]}`,
			generation: 4,
			want:       `{observedGeneration: 4, replicas: 3, readyReplicas: 2, tomorrow: {a: 1}, conditions: [{type: Available, status: "True"}]}`,
		},
		"CollisionCount": {
			reason: "The count of hash collisions is the hub controller's own, and the API server does not let it go down.",
			native: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}, status: {collisionCount: 2}}`,
			remote: `{collisionCount: 1}`,
			want:   `{collisionCount: 2}`,
		},
		"CollisionCountOfTarget": {
			reason: "The target's collisions are its own.",
			native: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}}`,
			remote: `{collisionCount: 1}`,
			want:   `{}`,
		},
		"NothingObserved": {
			reason: "Before the target has observed anything there is no generation, whatever the hub's controller wrote.",
			native: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}, status: {observedGeneration: 4, replicas: 3}}`,
			want:   `{}`,
		},
		"FromTheFuture": {
			reason:     "A generation is not observed before the object has it.",
			native:     `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}}`,
			generation: 5,
			want:       `{observedGeneration: 4}`,
		},
		"Problem": {
			reason:     "What is wrong is shown next to the last counts.",
			native:     `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}}`,
			remote:     `{replicas: 3, conditions: [{type: Available, status: "True"}]}`,
			generation: 4,
			problems:   []metav1.Condition{unreachable},
			want:       `{observedGeneration: 4, replicas: 3, conditions: [{type: Available, status: "True"}, {type: TargetReachable, status: "False", reason: Unreachable, message: because, lastTransitionTime: "2026-08-01T12:00:00Z", lastUpdateTime: "2026-08-01T12:00:00Z"}]}`,
		},
		"ConditionOfOurName": {
			reason:   "A condition on the target that has the name of one of ours is not shown: there would be two.",
			native:   `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}}`,
			remote:   `{conditions: [{type: TargetReachable, status: "True"}, {type: Mine, status: "True"}]}`,
			problems: []metav1.Condition{unreachable},
			want:     `{conditions: [{type: Mine, status: "True"}, {type: TargetReachable, status: "False", reason: Unreachable, message: because, lastTransitionTime: "2026-08-01T12:00:00Z", lastUpdateTime: "2026-08-01T12:00:00Z"}]}`,
		},
		"CountsDisagree": {
			reason: "Of two numbers that disagree the lower one is believed, and a zero is left out.",
			native: `{apiVersion: apps/v1, kind: Deployment}`,
			remote: `{replicas: 3, updatedReplicas: 4, availableReplicas: 2}`,
			want:   `{replicas: 3, updatedReplicas: 3}`,
		},
		"Balancer": {
			reason: "The target's balancer is the hub's, except that the hub's kube-proxy routes nothing there. A mode is invalid beside a hostname alone.",
			native: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			remote: `{loadBalancer: {ingress: [{ip: 203.0.113.7, ports: [{port: 80, protocol: TCP, error: example.org/Broken}]}, {ip: "2001:db8::1", ipMode: Proxy}, {hostname: a.example.com}]}}`,
			want:   `{loadBalancer: {ingress: [{ip: 203.0.113.7, ipMode: Proxy, ports: [{port: 80, protocol: TCP, error: example.org/Broken}]}, {ip: "2001:db8::1", ipMode: Proxy}, {hostname: a.example.com}]}}`,
		},
		"BalancerInvalid": {
			reason: "What the hub would not store is left out, and the rest is stored.",
			native: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			remote: `{loadBalancer: {ingress: [3, {}, {ip: 1.2.3}, {ip: 010.0.0.1}, {ip: "fe80::1%eth0"}, {ip: 7}, {hostname: 203.0.113.9}, {hostname: Not_A_Name}, {ipMode: VIP},
				{ip: bad, hostname: a.example.com, ipMode: VIP, other: x, ports: [x, {port: 0, protocol: TCP}, {port: 80, protocol: ICMP}, {port: 81, protocol: UDP, error: "two words"}]}]}}`,
			want: `{loadBalancer: {ingress: [{hostname: a.example.com, ports: [{port: 81, protocol: UDP}]}]}}`,
		},
		"BalancerAllInvalid": {
			reason: "An empty list of addresses would be an address to Helm 3.",
			native: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`,
			remote: `{loadBalancer: {ingress: [{hostname: ""}]}}`,
			want:   `{loadBalancer: {}}`,
		},
		"NoBalancer": {
			reason: "Only a LoadBalancer has one. What other controllers say of the target's Service stays there.",
			native: `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`,
			remote: `{loadBalancer: {ingress: [{ip: 203.0.113.7}]}, conditions: [{type: Mine, status: "True"}]}`,
			want:   `{loadBalancer: {}}`,
		},
		"ConditionsOfTheHub": {
			reason:   "Conditions that others set on the hub stay; ours come and go.",
			native:   `{apiVersion: v1, kind: Service, status: {conditions: [{type: Mine, status: "True"}, {type: Synced, status: "False"}]}}`,
			problems: []metav1.Condition{unreachable},
			want:     `{loadBalancer: {}, conditions: [{type: Mine, status: "True"}, {type: TargetReachable, status: "False", reason: Unreachable, message: because, lastTransitionTime: "2026-08-01T12:00:00Z"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			native := read(t, tc.native)
			seen := Observation{HubGeneration: tc.generation, Problems: tc.problems}
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
		"None":       {reason: "All is well.", conditions: []metav1.Condition{synced}},
		"InOrder":    {reason: "However they are stored, they are told in one order.", conditions: []metav1.Condition{refused, homeless}, want: []metav1.Condition{homeless, refused}},
		"OnTheWay":   {reason: "A step on the way is no problem.", conditions: []metav1.Condition{problem(v1alpha1.Synced, v1alpha1.ReasonApplying), problem(v1alpha1.TargetReachable, v1alpha1.ReasonConnecting), problem(v1alpha1.Scheduled, v1alpha1.ReasonNotScheduled)}},
		"NotReady":   {reason: "What is not ready says so in its own conditions.", conditions: []metav1.Condition{problem(v1alpha1.Ready, v1alpha1.ReasonFailed)}},
		"NobodyElse": {reason: "Conditions that are not Portico's are not told.", conditions: []metav1.Condition{problem("Mine", "Broken")}},
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
		"Observed":      {reason: "The target is done looking at what was sent.", projected: "4", inSpec: "4", remote: deployment("4", "7", "7"), want: 4},
		"NotObserved":   {reason: "It is not done.", projected: "4", inSpec: "4", remote: deployment("4", "8", "7")},
		"NotSent":       {reason: "It is done with what was sent before.", projected: "4", inSpec: "4", remote: deployment("3", "7", "7"), want: 3},
		"NothingToSend": {reason: "Later generations brought nothing to send: what asks for the same is observed.", projected: "6", inSpec: "4", remote: deployment("4", "7", "7"), want: 6},
		"NoStamp":       {reason: "Somebody removed the stamp; nobody can say.", projected: "4", inSpec: "4", remote: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 7}, status: {observedGeneration: 7}}`},
		"BadStamp":      {reason: "Or wrote over it.", projected: "4", inSpec: "4", remote: deployment("four", "7", "7")},
		"NoStatus":      {reason: "A Deployment's controller has yet to say a word.", projected: "1", inSpec: "1", remote: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1, annotations: {` + stamp + `: "1"}}}`},
		"OtherKind":     {reason: "Of kinds Portico does not know, those that report a generation are asked for it.", projected: "2", inSpec: "2", remote: `{apiVersion: example.com/v1, kind: Database, metadata: {generation: 7, annotations: {` + stamp + `: "2"}}, status: {observedGeneration: 6}}`},
		"SilentKind":    {reason: "Those that do not are taken at once.", projected: "2", inSpec: "2", remote: `{apiVersion: example.com/v1, kind: Database, metadata: {generation: 7, annotations: {` + stamp + `: "2"}}}`, want: 2},
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
		"Shadow":  {reason: "A shadow never has a Pod.", object: `{kind: ReplicaSet, metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {replicas: 3}}`, want: `{kind: ReplicaSet, metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {replicas: 0}}`},
		"Default": {reason: "No number means one.", object: `{kind: ReplicaSet, metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {}}`, want: `{kind: ReplicaSet, metadata: {labels: {workload.crossplane.io/schedule: remote}}, spec: {replicas: 0}}`},
		"LetGo":   {reason: "One that comes home may run.", object: `{kind: ReplicaSet, metadata: {}, spec: {replicas: 3}}`, want: `{kind: ReplicaSet, metadata: {}, spec: {replicas: 3}}`},
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
		"Older":    {reason: "Only the newest shows Pods.", remote: appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3}, want: appsv1.ReplicaSetStatus{ObservedGeneration: 2}},
		"Done":     {reason: "All are new, so all that are ready are new.", remote: appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1}, newest: true, want: appsv1.ReplicaSetStatus{ObservedGeneration: 2, Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1}},
		"Halfway":  {reason: "The ready Pods may be the old ones as far as these go.", remote: appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 2}, newest: true, want: appsv1.ReplicaSetStatus{ObservedGeneration: 2, Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 1}},
		"Disagree": {reason: "Whatever is reported, what is shown can be stored.", remote: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 5}, newest: true, want: appsv1.ReplicaSetStatus{ObservedGeneration: 2, Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 1}},
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
		"None":    {reason: "None was made yet."},
		"Numbers": {reason: "Revisions are numbers, not texts.", given: []metav1.Object{rs("a", "9"), rs("b", "10"), rs("c", "2")}, want: "b"},
		"Unsaid":  {reason: "One that does not say is the oldest.", given: []metav1.Object{&metav1.ObjectMeta{Name: "a"}, rs("b", "1")}, want: "b"},
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
