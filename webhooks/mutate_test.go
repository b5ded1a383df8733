package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec:
  replicas: 3
  fieldOfNextYear: {kept: [1, 2.5, 9007199254740993]}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
`

const heldDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec:
  replicas: 3
  fieldOfNextYear: {kept: [1, 2.5, 9007199254740993]}
  template:
    metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}
    spec: {containers: [{name: web, image: nginx}]}
`

const localDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, labels: {app: web}}
spec: {template: {metadata: {labels: {app: web}}}}
`

// TestMutate sends each request twice: a second call with the result of the first
// changes nothing.
func TestMutate(t *testing.T) {
	cases := map[string]struct {
		reason string
		testRequest
		want  string // the stored object; the object of the request if empty
		audit string
	}{
		"HoldCreate": {
			reason:      "A Deployment is held by its Pod template. Its other fields do not change.",
			testRequest: testRequest{path: HoldPath, object: deployment},
			want:        heldDeployment,
			audit:       "held",
		},
		"HoldApply": {
			reason:      "Another apply of the manifest without the hold keeps the hold.",
			testRequest: testRequest{path: HoldPath, object: deployment, old: heldDeployment},
			want:        heldDeployment,
			audit:       "held",
		},
		"HoldHeld": {
			reason:      "A held Deployment does not change.",
			testRequest: testRequest{path: HoldPath, object: heldDeployment, old: heldDeployment},
		},
		"HoldByPortico": {
			reason:      "Portico moves a Deployment in steps, and its own writes do not change.",
			testRequest: testRequest{path: HoldPath, object: deployment, old: heldDeployment, user: porticoUser},
		},
		"HoldRunning": {
			reason: "A running Deployment continues until its object on the target is available.",
			testRequest: testRequest{path: HoldPath, old: localDeployment, object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec: {template: {metadata: {labels: {app: web}}}}`},
			want: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, labels: {app: web, workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{"moving":true}'}}
spec: {template: {metadata: {labels: {app: web}}}}`,
			audit: "held",
		},
		"Release": {
			reason: "A Deployment without the label is no longer held.",
			testRequest: testRequest{path: HoldPath, old: heldDeployment, object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, labels: {app: web}}
spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}`},
			want:  localDeployment,
			audit: "held",
		},
		"HoldDamagedRecord": {
			reason: "A damaged record can be removed, as the refusal says.",
			testRequest: testRequest{path: HoldPath, object: heldDeployment, old: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{'}}
spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}}}`},
		},
		"HoldDamagedService": {
			reason: "The record of a Service can be removed, too. Its values then count as those of the hub.",
			testRequest: testRequest{
				path:   HoldPath,
				old:    `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{'}}, spec: {clusterIP: 10.0.0.1}}`,
				object: `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}, spec: {clusterIP: 10.0.0.1}}`,
			},
			want:  `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{}'}}, spec: {clusterIP: 10.0.0.1}}`,
			audit: "held",
		},
		"HoldService": {
			reason: "The user's values are recorded before the hub allocates its own, and the load balancer class excludes the hub's cloud.",
			testRequest: testRequest{path: HoldPath, object: `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: team-a, labels: {workload.crossplane.io/schedule: remote}}
spec: {type: LoadBalancer, ports: [{port: 80, nodePort: 30080}]}`},
			want: `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: team-a, labels: {workload.crossplane.io/schedule: remote}, annotations: {workload.crossplane.io/intent: '{"nodePorts":{"TCP/80":30080}}'}}
spec: {type: LoadBalancer, loadBalancerClass: workload.crossplane.io/remote, ports: [{port: 80, nodePort: 30080}]}`,
			audit: "held",
		},
		"HoldApplyUnchanged": {
			reason: "To apply a StatefulSet again changes nothing, not even the time of the last write.",
			testRequest: testRequest{
				path:   HoldPath,
				old:    `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, labels: {workload.crossplane.io/schedule: remote}, managedFields: [{manager: a, time: "2026-08-01T12:00:00Z"}]}, spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}}, volumeClaimTemplates: [{metadata: {name: data, labels: {workload.crossplane.io/schedule: remote}}}]}}`,
				object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, labels: {workload.crossplane.io/schedule: remote}, managedFields: [{manager: a, time: "2026-08-02T12:00:00Z"}]}, spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}}, volumeClaimTemplates: [{metadata: {name: data}}]}}`,
			},
			want:  `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, labels: {workload.crossplane.io/schedule: remote}, managedFields: [{manager: a, time: "2026-08-01T12:00:00Z"}]}, spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}}, volumeClaimTemplates: [{metadata: {name: data, labels: {workload.crossplane.io/schedule: remote}}}]}}`,
			audit: "held",
		},
		"HoldOtherKind": {
			reason:      "A kind that Portico does not support is allowed, if a configuration selects it.",
			testRequest: testRequest{path: HoldPath, object: `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: db, labels: {workload.crossplane.io/schedule: remote}}}`},
		},
		"HoldOtherVersion": {
			reason:      "A version that Portico does not support is allowed.",
			testRequest: testRequest{path: HoldPath, object: `{apiVersion: apps/v2, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}}`},
		},
		"HoldScale": {
			reason:      "A subresource may be of another kind than the request.",
			testRequest: testRequest{path: HoldPath, object: deployment, old: heldDeployment, subresource: "scale"},
		},
		"HoldOnceDeleted": {
			reason: "An object that is being deleted is held.",
			testRequest: testRequest{path: HoldPath, old: heldDeployment, object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, deletionTimestamp: "2030-01-01T00:00:00Z"}
spec: {template: {}}`},
			want: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}, deletionTimestamp: "2030-01-01T00:00:00Z"}
spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}}}`,
			audit: "held",
		},
		"NamespaceCreate": {
			reason:      "In a namespace that opts in, an object is labelled and held at once.",
			testRequest: testRequest{path: HoldNamespacePath, object: localDeployment},
			want: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}`,
			audit: "held",
		},
		"NamespaceNoLabels": {
			reason:      "An object without labels is labelled, too.",
			testRequest: testRequest{path: HoldNamespacePath, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}`},
			want: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {workload.crossplane.io/schedule: remote}}
spec: {template: {metadata: {labels: {workload.crossplane.io/schedule: remote}}}}`,
			audit: "held",
		},
		"NamespaceReapply": {
			reason:      "Another apply of a manifest without the label does not return the object to the hub.",
			testRequest: testRequest{path: HoldNamespacePath, old: heldDeployment, object: localDeployment},
			want: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, labels: {app: web, workload.crossplane.io/schedule: remote}}
spec: {template: {metadata: {labels: {app: web, workload.crossplane.io/schedule: remote}}}}`,
			audit: "held",
		},
		"NamespaceLater": {
			reason:      "An object that existed before the namespace opted in remains on the hub.",
			testRequest: testRequest{path: HoldNamespacePath, old: localDeployment, object: localDeployment},
		},
		"NamespaceLocal": {
			reason:      "An object with the value local remains on the hub.",
			testRequest: testRequest{path: HoldNamespacePath, object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: local}}}`},
		},
		"Pin": {
			reason:      "The ReplicaSet of a held Deployment has no Pods.",
			testRequest: testRequest{path: PinPath, object: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {pod-template-hash: "1", workload.crossplane.io/schedule: remote}}, spec: {replicas: 3, other: 1}}`},
			want:        `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {pod-template-hash: "1", workload.crossplane.io/schedule: remote}}, spec: {replicas: 0, other: 1}}`,
			audit:       "pinned",
		},
		"PinUnsaid": {
			reason:      "The default number of replicas is one.",
			testRequest: testRequest{path: PinPath, object: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {pod-template-hash: "1", workload.crossplane.io/schedule: remote}}}`},
			want:        `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {pod-template-hash: "1", workload.crossplane.io/schedule: remote}}, spec: {replicas: 0}}`,
			audit:       "pinned",
		},
		"PinGoesHome": {
			reason: "A ReplicaSet without the label is an ordinary one.",
			testRequest: testRequest{
				path:   PinPath,
				old:    `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {pod-template-hash: "1", workload.crossplane.io/schedule: remote}}, spec: {replicas: 0}}`,
				object: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1}, spec: {replicas: 3}}`,
			},
		},
		"PinOtherKind": {
			reason:      "Only ReplicaSets are pinned.",
			testRequest: testRequest{path: PinPath, object: heldDeployment},
		},
		"Shield": {
			reason: "The status of the hub's controllers is replaced by the stored one.",
			testRequest: testRequest{
				path: ShieldPath, subresource: "status",
				old:    heldDeployment + "status: {replicas: 3, readyReplicas: 3}",
				object: heldDeployment + "status: {replicas: 0, observedGeneration: 7}",
			},
			want:  heldDeployment + "status: {replicas: 3, readyReplicas: 3}",
			audit: "shielded",
		},
		"ShieldFirst": {
			reason: "Without a stored status there is none.",
			testRequest: testRequest{
				path: ShieldPath, subresource: "status",
				old:    heldDeployment,
				object: heldDeployment + "status: {replicas: 0}",
			},
			want:  heldDeployment,
			audit: "shielded",
		},
		"ShieldUnchanged": {
			reason: "A status that changes nothing needs no shield.",
			testRequest: testRequest{
				path: ShieldPath, subresource: "status",
				old:    heldDeployment + "status: {replicas: 3}",
				object: heldDeployment + "status: {replicas: 3}",
			},
		},
		"ShieldPortico": {
			reason: "Portico writes the status from the target.",
			testRequest: testRequest{
				path: ShieldPath, subresource: "status", user: porticoUser,
				old:    heldDeployment + "status: {replicas: 3}",
				object: heldDeployment + "status: {replicas: 2}",
			},
		},
		"ShieldRunning": {
			reason: "A Deployment that still runs on the hub has its own status.",
			testRequest: testRequest{
				path: ShieldPath, subresource: "status",
				old:    deployment + "status: {replicas: 3}",
				object: deployment + "status: {replicas: 2}",
			},
		},
		"ShieldWithoutLabel": {
			reason: "A status write cannot change labels.",
			testRequest: testRequest{
				path: ShieldPath, subresource: "status",
				old:    heldDeployment + "status: {replicas: 3}",
				object: localDeployment + "status: {replicas: 0}",
			},
			want:  localDeployment + "status: {replicas: 3}",
			audit: "shielded",
		},
		"ShieldSpec": {
			reason: "Only status writes are shielded.",
			testRequest: testRequest{
				path:   ShieldPath,
				old:    heldDeployment + "status: {replicas: 3}",
				object: heldDeployment + "status: {replicas: 0}",
			},
		},
		"ShieldShadow": {
			reason: "The status of a held ReplicaSet is shielded, too.",
			testRequest: testRequest{
				path: ShieldPath, subresource: "status",
				old:    `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {pod-template-hash: "1", workload.crossplane.io/schedule: remote}}, status: {replicas: 3}}`,
				object: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {pod-template-hash: "1", workload.crossplane.io/schedule: remote}}, status: {replicas: 0}}`,
			},
			want:  `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, labels: {pod-template-hash: "1", workload.crossplane.io/schedule: remote}}, status: {replicas: 3}}`,
			audit: "shielded",
		},
		"ShieldOrdinary": {
			reason: "The status of an ordinary ReplicaSet is not shielded.",
			testRequest: testRequest{
				path: ShieldPath, subresource: "status",
				old:    `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1}, status: {replicas: 3}}`,
				object: `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1}, status: {replicas: 0}}`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hooks := front(t)
			stored, resp := admit(t, hooks, tc.testRequest)
			want := tc.want
			if want == "" {
				want = tc.object
			}
			if diff := cmp.Diff(parsed(t, want), parsed(t, stored)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if (tc.want == "") != (len(resp.Patch) == 0) {
				t.Errorf("%s The patch is %s", tc.reason, resp.Patch)
			}
			var audit map[string]string
			if tc.audit != "" {
				audit = map[string]string{"decision": tc.audit}
			}
			if diff := cmp.Diff(audit, resp.AuditAnnotations); diff != "" {
				t.Errorf("audit annotations (-want +got):\n%s", diff)
			}

			repeated := tc.testRequest
			repeated.object = stored
			if resp := submit(t, hooks, repeated); !resp.Allowed || len(resp.Patch) > 0 {
				t.Errorf("asked again about its own answer, it says %s %v", resp.Patch, resp.Result)
			}
			injected := tc.testRequest
			injected.object = inject(t, stored)
			if resp := submit(t, hooks, injected); !resp.Allowed || len(resp.Patch) > 0 {
				t.Errorf("asked again after another webhook's change, it says %s %v", resp.Patch, resp.Result)
			}
			dry := tc.testRequest
			dry.dryRun = true
			if diff := cmp.Diff(resp, submit(t, hooks, dry)); diff != "" {
				t.Errorf("a dry run has another answer (-real +dry):\n%s", diff)
			}
		})
	}
}

// inject adds an annotation to an object, as another webhook might.
func inject(t testing.TB, text string) string {
	t.Helper()
	object := parsed(t, text)
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations["mesh.example.org/injected"] = "true"
	metadata["annotations"] = annotations
	return encode(t, object)
}
