package kinds

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestProject(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		native, want string
		malformed    bool
	}{
		"Deployment": {
			reason: "The user's fields are sent with the hub's generation. Fields of the hub and of Portico are not sent.",
			native: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: 1f6d9e3c
  resourceVersion: "12"
  generation: 4
  creationTimestamp: "2026-08-01T12:00:00Z"
  labels: {app: web, workload.crossplane.io/schedule: remote, workload.crossplane.io/application: shop}
  annotations:
    team: blue
    deployment.kubernetes.io/revision: "3"
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    workload.crossplane.io/target-selector: env=prod
    workload.crossplane.io/intent: '{"moving":true}'
  finalizers: [example.com/wait]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: b}]
  managedFields: [{manager: kubectl}]
spec:
  replicas: 3
  paused: true
  template:
    metadata:
      creationTimestamp: null
      labels: {app: web, workload.crossplane.io/schedule: remote}
      annotations: {kubectl.kubernetes.io/restartedAt: "2026-08-01T12:00:00Z"}
    spec: {containers: [{name: web, image: "wordpress:6"}]}
status: {replicas: 3}`,
			want: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web}
  annotations: {team: blue, workload.crossplane.io/hub-generation: "4"}
spec:
  replicas: 3
  paused: true
  template:
    metadata:
      labels: {app: web}
      annotations: {kubectl.kubernetes.io/restartedAt: "2026-08-01T12:00:00Z"}
    spec: {containers: [{name: web, image: "wordpress:6"}]}`,
		},
		"Bare": {
			reason: "Maps that become empty are removed.",
			native: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {deployment.kubernetes.io/revision: "1"}}, spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}}}}`,
			want:   `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {metadata: {}}}}`,
		},
		"FieldOfTomorrow": {
			reason: "Fields that this version does not know are sent.",
			native: `{apiVersion: apps/v1, kind: Deployment, tomorrow: 1, metadata: {name: web}, spec: {tomorrow: [2], template: {tomorrow: {a: 3}}}}`,
			want:   `{apiVersion: apps/v1, kind: Deployment, tomorrow: 1, metadata: {name: web}, spec: {tomorrow: [2], template: {tomorrow: {a: 3}}}}`,
		},
		"ServiceAllocated": {
			reason: "Fields that the hub allocated are not sent. A Service has no observed generation, so the hub's generation is not sent.",
			native: `
apiVersion: v1
kind: Service
metadata: {name: web, generation: 4, annotations: {workload.crossplane.io/intent: '{}'}}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.7
  clusterIPs: [10.0.0.7]
  ipFamilies: [IPv4]
  ipFamilyPolicy: SingleStack
  externalTrafficPolicy: Local
  healthCheckNodePort: 31999
  loadBalancerClass: workload.crossplane.io/remote
  sessionAffinity: ClientIP
  tomorrow: 1
  ports: [{name: http, port: 80, protocol: TCP, targetPort: web, nodePort: 31234, tomorrow: 2}]`,
			want: `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  sessionAffinity: ClientIP
  tomorrow: 1
  ports: [{name: http, port: 80, protocol: TCP, targetPort: web, tomorrow: 2}]`,
		},
		"ServiceGiven": {
			reason: "Fields that the user set are sent.",
			native: `
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    workload.crossplane.io/intent: '{"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","healthCheckNodePort":30200,"loadBalancerClass":"fast","nodePorts":{"TCP/53":30053,"UDP/53":30054}}'
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.7
  loadBalancerClass: workload.crossplane.io/remote
  ports: [{port: 53, nodePort: 30053}, {port: 53, protocol: UDP, nodePort: 30054}, {port: 80, nodePort: 31234}]`,
			want: `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.7
  clusterIPs: [10.0.0.7]
  ipFamilies: [IPv4]
  ipFamilyPolicy: SingleStack
  healthCheckNodePort: 30200
  loadBalancerClass: fast
  ports: [{port: 53, nodePort: 30053}, {port: 53, protocol: UDP, nodePort: 30054}, {port: 80}]`,
		},
		"ServiceWithoutRecord": {
			reason: "Without a record, fields that the hub may have allocated are not sent.",
			native: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, clusterIP: 10.0.0.7, ports: [{port: 80, nodePort: 31234}]}}`,
			want:   `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: [{port: 80}]}}`,
		},
		"Malformed": {
			reason:    "An invalid record is an error, because the hub's addresses could be sent.",
			native:    `{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {workload.crossplane.io/intent: '{'}}, spec: {}}`,
			malformed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			native := read(t, tc.native)
			before := native.DeepCopy()
			k, known := For(native.GroupVersionKind())
			if !known {
				t.Fatalf("unknown kind %s", native.GetKind())
			}
			got, err := Project(k, native)
			if diff := cmp.Diff(before.Object, native.Object); diff != "" {
				t.Errorf("projecting changed the native object:\n%s", diff)
			}
			if tc.malformed {
				var malformed *field.Error
				if !errors.As(err, &malformed) || malformed.Field != IntentPath.String() {
					t.Errorf("%s\nwant an error about %s, got %v", tc.reason, IntentPath, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestResourceName(t *testing.T) {
	long := strings.Repeat("a", 253)
	for name, tc := range map[string]struct {
		reason, kind, object, want string
	}{
		"Short":   {reason: "The name ends with the kind in lower case.", kind: "Deployment", object: "web", want: "web-deployment"},
		"Dashed":  {reason: "The name of the object may end like a kind.", kind: "Service", object: "web-deployment", want: "web-deployment-service"},
		"Fitting": {reason: "A name up to the limit is complete.", kind: "Service", object: long[:245], want: long[:245] + "-service"},
		"Cut":     {reason: "A longer name is truncated and has a hash.", kind: "Service", object: long, want: long[:228] + "-8e8f6581e0ff9e30-service"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ResourceName(tc.kind, tc.object)
			if got != tc.want {
				t.Errorf("%s\nwant %s\ngot  %s", tc.reason, tc.want, got)
			}
			if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 {
				t.Errorf("%s is no name: %v", got, problems)
			}
		})
	}
	if a, b := ResourceName("Deployment", long), ResourceName("Deployment", long[:252]+"b"); a == b {
		t.Errorf("two long names that differ at the end share %s", a)
	}
}
