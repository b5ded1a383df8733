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
			reason: "The user set no field that a hub allocates.",
			object: remoteService("", `{type: ClusterIP, ports: [{port: 80}]}`),
			want:   remoteService(`{}`, `{type: ClusterIP, ports: [{port: 80}]}`),
		},
		"Allocated": {
			reason: "A field that the hub allocated is not recorded.",
			old:    remoteService(`{}`, `{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 31234}]}`),
			object: remoteService(`{}`, `{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 31234}]}`),
		},
		"Given": {
			reason: "In a new Service each field is the user's.",
			object: remoteService("", `{type: NodePort, clusterIP: 10.0.0.7, ipFamilies: [IPv6], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 30080}, {port: 53, protocol: UDP, nodePort: 30053}]}`),
			want:   remoteService(`{"clusterIP":"10.0.0.7","ipFamilies":["IPv6"],"ipFamilyPolicy":"SingleStack","nodePorts":{"TCP/80":30080,"UDP/53":30053}}`, `{type: NodePort, clusterIP: 10.0.0.7, ipFamilies: [IPv6], ipFamilyPolicy: SingleStack, ports: [{port: 80, nodePort: 30080}, {port: 53, protocol: UDP, nodePort: 30053}]}`),
		},
		"NodePortGivenLater": {
			reason: "A changed field is the user's.",
			old:    remoteService(`{}`, `{type: NodePort, ports: [{port: 80, nodePort: 31234}]}`),
			object: remoteService(`{}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
			want:   remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
		},
		"NodePortWithdrawn": {
			reason: "A removed field is removed from the record.",
			old:    remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
			object: remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80}]}`),
			want:   remoteService(`{}`, `{type: NodePort, ports: [{port: 80}]}`),
		},
		"PortRenumbered": {
			reason: "An allocated nodePort whose port changes is still not the user's.",
			old:    remoteService(`{}`, `{type: NodePort, ports: [{port: 80, nodePort: 31234}]}`),
			object: remoteService(`{}`, `{type: NodePort, ports: [{port: 8080, nodePort: 31234}]}`),
		},
		"GivenPortRenumbered": {
			reason: "A nodePort of the user moves to the new number of its port.",
			old:    remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
			object: remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 8080, nodePort: 30080}]}`),
			want:   remoteService(`{"nodePorts":{"TCP/8080":30080}}`, `{type: NodePort, ports: [{port: 8080, nodePort: 30080}]}`),
		},
		"NodePortNoLonger": {
			reason: "A nodePort is removed with the type that has node ports, and so is its record.",
			old:    remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30080}]}`),
			object: remoteService(`{"nodePorts":{"TCP/80":30080}}`, `{type: ClusterIP, ports: [{port: 80, nodePort: 30080}]}`),
			want:   remoteService(`{}`, `{type: ClusterIP, ports: [{port: 80, nodePort: 30080}]}`),
		},
		"Headless": {
			reason: "The cluster IP None is always the user's.",
			object: remoteService("", `{type: ClusterIP, clusterIP: None}`),
			want:   remoteService(`{"clusterIP":"None"}`, `{type: ClusterIP, clusterIP: None}`),
		},
		"HeadlessAgain": {
			reason: "The list of addresses that the API server adds is not recorded.",
			old:    remoteService(`{"clusterIP":"None"}`, `{type: ClusterIP, clusterIP: None, clusterIPs: [None], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`),
			object: remoteService(`{"clusterIP":"None"}`, `{type: ClusterIP, clusterIP: None, clusterIPs: [None], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}`),
		},
		"ToExternalName": {
			reason: "An ExternalName has no addresses.",
			old:    remoteService(`{"clusterIP":"10.0.0.7","ipFamilyPolicy":"SingleStack"}`, `{type: ClusterIP, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilyPolicy: SingleStack}`),
			object: remoteService(`{"clusterIP":"10.0.0.7","ipFamilyPolicy":"SingleStack"}`, `{type: ExternalName, externalName: a.example.com, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilyPolicy: SingleStack}`),
			want:   remoteService(`{}`, `{type: ExternalName, externalName: a.example.com, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilyPolicy: SingleStack}`),
		},
		"Balancer": {
			reason: "Portico's class keeps the hub's load balancer away.",
			object: remoteService("", `{type: LoadBalancer}`),
			want:   remoteService(`{}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerOfClass": {
			reason: "Portico's class replaces the user's class, which is recorded.",
			object: remoteService("", `{type: LoadBalancer, loadBalancerClass: fast}`),
			want:   remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerAppliedAgain": {
			reason: "The user's class is applied again.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, loadBalancerClass: fast}`),
			want:   remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerOfAnotherClass": {
			reason: "The user's class changes in the record, also if admission runs twice.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, loadBalancerClass: slow}`),
			want:   remoteService(`{"loadBalancerClass":"slow"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerOfNoClass": {
			reason: "A removed class is removed from the record, also if admission runs twice.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer}`),
			want:   remoteService(`{}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"BalancerPatched": {
			reason: "A patch of another field keeps the class in the record.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, sessionAffinity: ClientIP, `+isPorticoKey+`}`),
		},
		"RecordDropped": {
			reason: "A replace without annotations keeps the record of unchanged fields.",
			old:    remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
			object: remoteService("", `{type: LoadBalancer, `+isPorticoKey+`}`),
			want:   remoteService(`{"loadBalancerClass":"fast"}`, `{type: LoadBalancer, `+isPorticoKey+`}`),
		},
		"NoLongerBalancer": {
			reason: "Only a LoadBalancer has a class, a health check port and node ports.",
			old:    remoteService(`{"healthCheckNodePort":30200,"loadBalancerClass":"fast","nodePorts":{"TCP/80":30080}}`, `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30200, `+isPorticoKey+`, ports: [{port: 80, nodePort: 30080}]}`),
			object: remoteService(`{"healthCheckNodePort":30200,"loadBalancerClass":"fast","nodePorts":{"TCP/80":30080}}`, `{type: ClusterIP, externalTrafficPolicy: Local, healthCheckNodePort: 30200, `+isPorticoKey+`, ports: [{port: 80, nodePort: 30080}]}`),
			want:   remoteService(`{}`, `{type: ClusterIP, externalTrafficPolicy: Local, healthCheckNodePort: 30200, ports: [{port: 80, nodePort: 30080}]}`),
		},
		"HealthCheck": {
			reason: "A health check port of the user is recorded.",
			object: remoteService("", `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30200}`),
			want:   remoteService(`{"healthCheckNodePort":30200}`, `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30200, `+isPorticoKey+`}`),
		},
		"HealthCheckNoLonger": {
			reason: "The health check port is removed without local traffic, and so is its record.",
			old:    remoteService(`{"healthCheckNodePort":30200}`, `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30200, `+isPorticoKey+`}`),
			object: remoteService(`{"healthCheckNodePort":30200}`, `{type: LoadBalancer, externalTrafficPolicy: Cluster, healthCheckNodePort: 30200, `+isPorticoKey+`}`),
			want:   remoteService(`{}`, `{type: LoadBalancer, externalTrafficPolicy: Cluster, healthCheckNodePort: 30200, `+isPorticoKey+`}`),
		},
		"MovedFromTheHub": {
			reason: "Fields from before the label were allocated by the hub.",
			old:    localService(`{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ports: [{port: 80, nodePort: 31234}]}`),
			object: remoteService("", `{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ports: [{port: 80, nodePort: 31234}]}`),
			want:   remoteService(`{}`, `{type: NodePort, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ports: [{port: 80, nodePort: 31234}]}`),
		},
		"HeadlessMovedFromTheHub": {
			reason: "The cluster IP None from before the label is the user's.",
			old:    localService(`{type: ClusterIP, clusterIP: None, clusterIPs: [None]}`),
			object: remoteService("", `{type: ClusterIP, clusterIP: None, clusterIPs: [None]}`),
			want:   remoteService(`{"clusterIP":"None"}`, `{type: ClusterIP, clusterIP: None, clusterIPs: [None]}`),
		},
		"Restored": {
			reason: "In an exported Service the record has the user's fields.",
			object: remoteService(`{"loadBalancerClass":"fast","nodePorts":{"TCP/80":30080}}`, `{type: LoadBalancer, clusterIP: 10.0.0.7, `+isPorticoKey+`, ports: [{port: 80, nodePort: 30080}, {port: 443, nodePort: 31234}]}`),
		},
		"RestoredAndEdited": {
			reason: "Edits of an exported Service change the record.",
			object: remoteService(`{"clusterIP":"10.0.0.7","nodePorts":{"TCP/80":30080}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30090}]}`),
			want:   remoteService(`{"nodePorts":{"TCP/80":30090}}`, `{type: NodePort, ports: [{port: 80, nodePort: 30090}]}`),
		},
		"RestoredBroken": {
			reason:  "An invalid record is an error, because the hub's addresses could be sent.",
			object:  remoteService(`{"clusterIp": 1}`, `{type: ClusterIP}`),
			refused: true,
		},
		"Broken":   {reason: "An invalid record is an error in an update too.", old: remoteService(`{`, `{type: ClusterIP}`), object: remoteService(`{`, `{type: ClusterIP}`), refused: true},
		"PutRight": {reason: "The removal of an invalid record is allowed.", old: remoteService(`{`, `{type: ClusterIP}`), object: remoteService("", `{type: ClusterIP}`), want: remoteService(`{}`, `{type: ClusterIP}`)},
		"FieldOfTomorrow": {
			reason: "Fields that this version does not know are kept.",
			object: remoteService("", `{type: LoadBalancer, tomorrow: {a: [1]}, ports: [{port: 80, tomorrow: 1}]}`),
			want:   remoteService(`{}`, `{type: LoadBalancer, `+isPorticoKey+`, tomorrow: {a: [1]}, ports: [{port: 80, tomorrow: 1}]}`),
		},
		"Release": {
			reason: "The record is removed with the label.",
			old:    remoteService(`{}`, `{type: ClusterIP}`),
			object: `{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {workload.crossplane.io/intent: '{}'}}, spec: {type: ClusterIP}}`,
			want:   `{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {}}, spec: {type: ClusterIP}}`,
		},
		"ReleaseByType": {
			reason: "A load balancer of a target returns to the hub by a change of its type, without Portico's class.",
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
		"Create":      {reason: "A new object in a labelled namespace gets the label.", object: silent, want: remote},
		"CreateBare":  {reason: "Missing metadata is added.", object: bare, want: `{apiVersion: v1, kind: Service, metadata: {labels: {workload.crossplane.io/schedule: remote}}}`},
		"OptedOut":    {reason: "A new object may opt out.", object: local, want: local},
		"Before":      {reason: "An object from before the namespace's label is not changed.", old: silent, object: silent, want: silent},
		"Dropped":     {reason: "A replace without the label keeps the label.", old: remote, object: silent, want: remote},
		"OptOutLater": {reason: "An update to label local is allowed.", old: remote, object: local, want: local},
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
