package kinds

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// remoteService is a remote Service with a recorded intent ("" for none) and
// the given spec.
func remoteService(intent, spec string) string {
	annotations := ""
	if intent != "" {
		annotations = fmt.Sprintf(`, annotations: {workload.crossplane.io/intent: '%s'}`, intent)
	}
	return fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}%s}, spec: %s}`, annotations, spec)
}

func localService(spec string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: %s}`, spec)
}

func TestHoldService(t *testing.T) {
	const isPorticoKey = "loadBalancerClass: workload.crossplane.io/remote"
	testHold(t, map[string]holdCase{
		"Plain": {
			reason: "Nothing was given that a hub allocates.",
			object: remoteService("", `{type: ClusterIP, ports: [{port: 80}]}`),
			want:   remoteService(`{}`, `{type: ClusterIP, ports: [{port: 80}]}`),
		},
		"Allocated": {
			reason: "What the hub allocated since is not the user's.",
			old:    remoteService(`{}`, `{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 31234}]}`),
			object: remoteService(`{}`, `{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 31234}]}`),
		},
		"Given": {
			reason: "On create, every value is the user's.",
			object: remoteService("", `{type: NodePort, clusterIP: 10.0.0.7, ipFamilies: [IPv6], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 30080}, {port: 53, protocol: UDP, nodePort: 30053}]}`),
			want:   remoteService(`{"clusterIP":"10.0.0.7","ipFamilies":["IPv6"],"ipFamilyPolicy":"SingleStack","nodePorts":{"TCP/80":30080,"UDP/53":30053}}`, `{type: NodePort, clusterIP: 10.0.0.7, ipFamilies: [IPv6], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 30080}, {port: 53, protocol: UDP, nodePort: 30053}]}`),
		},
		"NodePortGivenLater": {
			reason: "A value that changes is given by whoever changes it.",
			old:    remoteService(`{}`, `{type: NodePort, ports: [{port: 80, nodePort: 31234}]}`),
			object: remoteService(`{}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
			want:   remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
		},
		"NodePortWithdrawn": {
			reason: "A value that is removed is the hub's to allocate again.",
			old:    remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
			object: remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80}]}`),
			want:   remoteService(`{}`, `{type: NodePort, ports: [{port: 80}]}`),
		},
		"PortRenumbered": {
			reason: "kubectl edit leaves an allocated nodePort where it was, under a port that has another number. It is still nobody's wish.",
			old:    remoteService(`{}`, `{type: NodePort, ports: [{port: 80, nodePort: 31234}]}`),
			object: remoteService(`{}`, `{type: NodePort, ports: [{port: 8080, nodePort: 31234}]}`),
		},
		"GivenPortRenumbered": {
			reason: "A nodePort that was given goes with its port.",
			old:    remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
			object: remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 8080, nodePort: 30080}]}`),
			want:   remoteService(`{"nodePorts":{"TCP/8080":30080}}`, `{type: NodePort, ports: [{port: 8080, nodePort: 30080}]}`),
		},
		"NodePortNoLonger": {
			reason: "The API server forgets a nodePort with the type that had it, and so does the record.",
			old:    remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
			object: remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: ClusterIP, ports: [{port: 80, nodePort: 30080}]}`),
			want:   remoteService(`{}`, `{type: ClusterIP, ports: [{port: 80, nodePort: 30080}]}`),
		},
		"Headless": {
			reason: "None is never allocated.",
			object: remoteService("", `{type: ClusterIP, clusterIP: None}`),
			want:   remoteService(`{"clusterIP":"None"}`, `{type: ClusterIP, clusterIP: None}`),
		},
		"HeadlessAgain": {
			reason: "The list of addresses that the API server adds changes nothing that is sent.",
			old:    remoteService(`{"clusterIP":"None"}`, `{type: ClusterIP, clusterIP: None, clusterIPs: [None], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`),
			object: remoteService(`{"clusterIP":"None"}`, `{type: ClusterIP, clusterIP: None, clusterIPs: [None], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`),
		},
		"ToExternalName": {
			reason: "A name has no addresses.",
			old:    remoteService(`{"clusterIP":"10.0.0.7","ipFamilyPolicy":"SingleStack"}`, `{type: ClusterIP, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilyPolicy: SingleStack}`),
			object: remoteService(`{"clusterIP":"10.0.0.7","ipFamilyPolicy":"SingleStack"}`, `{type: ExternalName, externalName: a.example.com, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilyPolicy: SingleStack}`),
			want:   remoteService(`{}`, `{type: ExternalName, externalName: a.example.com, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilyPolicy: SingleStack}`),
		},
		"Balancer": {
			reason: "A class of ours keeps the hub's cloud away.",
			object: remoteService("", `{type: LoadBalancer}`),
			want:   remoteService(`{}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerOfClass": {
			reason: "Ours hides the user's class, which is recorded.",
			object: remoteService("", `{type: LoadBalancer, loadBalancerClass: fast}`),
			want:   remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerAppliedAgain": {
			reason: "An apply gives the user's class again.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, loadBalancerClass: fast}`),
			want:   remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerOfAnotherClass": {
			reason: "The user's class changes behind ours, also when admission asks twice.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, loadBalancerClass: slow}`),
			want:   remoteService(`{"loadBalancerClass":"slow"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerOfNoClass": {
			reason: "A class that is removed is gone, also when admission asks twice.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer}`),
			want:   remoteService(`{}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerPatched": {
			reason: "A patch of something else leaves the class as it was given.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, sessionAffinity: ClientIP, `+isPorticoKey+`}`),
		},
		"RecordDropped": {
			reason: "A replace without annotations keeps what was recorded of values that stay.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService("", `{type: LoadBalancer, `+isPorticoKey+`}`),
			want:   remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"NoLongerBalancer": {
			reason: "Only a LoadBalancer has a class, a health check or node ports.",
			old:    remoteService(`{"healthCheckNodePort":30200,"loadBalancerClass":"fast","nodePorts":{"TCP/80":30080}}`, `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30200, `+isPorticoKey+`, ports: [{port: 80, nodePort: 30080}]}`),
			object: remoteService(`{"healthCheckNodePort":30200,"loadBalancerClass":"fast","nodePorts":{"TCP/80":30080}}`, `{type: ClusterIP, externalTrafficPolicy: Local, healthCheckNodePort: 30200, `+isPorticoKey+`, ports: [{port: 80, nodePort: 30080}]}`),
			want:   remoteService(`{}`, `{type: ClusterIP, externalTrafficPolicy: Local, healthCheckNodePort: 30200, ports: [{port: 80, nodePort: 30080}]}`),
		},
		"HealthCheck": {
			reason: "A health check port belongs to local traffic.",
			object: remoteService("", `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30200}`),
			want:   remoteService(`{"healthCheckNodePort":30200}`, `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30200, `+isPorticoKey+`}`),
		},
		"HealthCheckNoLonger": {
			reason: "The API server forgets it when traffic is no longer local.",
			old:    remoteService(`{"healthCheckNodePort":30200}`, `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30200, `+isPorticoKey+`}`),
			object: remoteService(`{"healthCheckNodePort":30200}`, `{type: LoadBalancer, externalTrafficPolicy: Cluster, healthCheckNodePort: 30200, `+isPorticoKey+`}`),
			want:   remoteService(`{}`, `{type: LoadBalancer, externalTrafficPolicy: Cluster, healthCheckNodePort: 30200, `+isPorticoKey+`}`),
		},
		"MovedFromTheHub": {
			reason: "What a Service has when it is labelled was allocated here.",
			old:    localService(`{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ports: [{port: 80, nodePort: 31234}]}`),
			object: remoteService("", `{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ports: [{port: 80, nodePort: 31234}]}`),
			want:   remoteService(`{}`, `{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ports: [{port: 80, nodePort: 31234}]}`),
		},
		"HeadlessMovedFromTheHub": {
			reason: "None was meant, whenever it was said.",
			old:    localService(`{type: ClusterIP, clusterIP: None, clusterIPs: [None]}`),
			object: remoteService("", `{type: ClusterIP, clusterIP: None, clusterIPs: [None]}`),
			want:   remoteService(`{"clusterIP":"None"}`, `{type: ClusterIP, clusterIP: None, clusterIPs: [None]}`),
		},
		"Restored": {
			reason: "Re-created from an export, the record tells the user's values from the old hub's.",
			object: remoteService(`{"loadBalancerClass":"fast","nodePorts":{"TCP/80":30080}}`, `{type: LoadBalancer, clusterIP: 10.0.0.7, `+isPorticoKey+`, ports: [{port: 80, nodePort: 30080}, {port: 443, nodePort: 31234}]}`),
		},
		"RestoredAndEdited": {
			reason: "Values in an export that were edited or removed are so.",
			object: remoteService(`{"clusterIP":"10.0.0.7","nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30090}]}`),
			want:   remoteService(`{"nodePorts":{"TCP/80":30090}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30090}]}`),
		},
		"RestoredBroken": {
			reason:  "A record that cannot be read says nothing, and guessing could send a hub's address to a target.",
			object:  remoteService(`{"clusterIp": 1}`, `{type: ClusterIP}`),
			refused: true,
		},
		"Broken":   {reason: "Nor later.", old: remoteService(`{`, `{type: ClusterIP}`), object: remoteService(`{`, `{type: ClusterIP}`), refused: true},
		"PutRight": {reason: "The way out that the refusal names.", old: remoteService(`{`, `{type: ClusterIP}`), object: remoteService("", `{type: ClusterIP}`), want: remoteService(`{}`, `{type: ClusterIP}`)},
		"FieldOfTomorrow": {
			reason: "A field this binary does not know survives.",
			object: remoteService("", `{type: LoadBalancer, tomorrow: {a: [1]}, ports: [{port: 80, tomorrow: 1}]}`),
			want:   remoteService(`{}`, `{type: LoadBalancer, `+isPorticoKey+`, tomorrow: {a: [1]}, ports: [{port: 80, tomorrow: 1}]}`),
		},
		"Release": {
			reason: "What Portico recorded goes with the label.",
			old:    remoteService(`{}`, `{type: ClusterIP}`),
			object: `{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {workload.crossplane.io/intent: '{}'}}, spec: {type: ClusterIP}}`,
			want:   `{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {}}, spec: {type: ClusterIP}}`,
		},
		"ReleaseByType": {
			reason: "A balancer comes home by becoming something else, without our class.",
			old:    remoteService(`{}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: localService(`{type: ClusterIP, ` + isPorticoKey + `}`),
			want:   localService(`{type: ClusterIP}`),
		},
	})
}

func TestOptIn(t *testing.T) {
	const (
		silent = `{apiVersion: v1, kind: Service, metadata: {name: web}}`
		bare   = `{apiVersion: v1, kind: Service}`
		local  = `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {workload.crossplane.io/schedule: local}}}`
		remote = `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}}`
	)
	for name, tc := range map[string]struct {
		reason            string
		old, object, want string
	}{
		"Create":      {reason: "An object made in a namespace that opts in runs on a target.", object: silent, want: remote},
		"CreateBare":  {reason: "An object without metadata gets some.", object: bare, want: `{apiVersion: v1, kind: Service, metadata: {labels: {workload.crossplane.io/schedule: remote}}}`},
		"OptedOut":    {reason: "An object may opt out.", object: local, want: local},
		"Before":      {reason: "An object from before the namespace opted in stays where it is.", old: silent, object: silent, want: silent},
		"Dropped":     {reason: "A replace that does not mention the label does not bring the object home.", old: remote, object: silent, want: remote},
		"OptOutLater": {reason: "One that says local does.", old: remote, object: local, want: local},
	} {
		t.Run(name, func(t *testing.T) {
			object := read(t, tc.object)
			got := patch(t, object, OptIn(object.DeepCopy(), read(t, tc.old)))
			if diff := cmp.Diff(read(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
