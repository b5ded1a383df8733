package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func resource(t *testing.T, text string) *v1alpha1.KubernetesApplicationResource {
	t.Helper()
	out := &v1alpha1.KubernetesApplicationResource{}
	if err := yaml.Unmarshal([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// observed is a resource with spec.observe: Full.
const observed = `
metadata: {name: web-deployment, namespace: shop}
spec: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}, observe: Full}
status:
  conditions:
  - {type: TargetReachable, status: "False", message: target eu-1 does not answer}
  - {type: Drifted, status: "True", message: "Deployment web was changed on target eu-1, and the change is kept: .spec.replicas"}
  observed:
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: web
      namespace: shop
      uid: u1
      annotations: {workload.crossplane.io/applied: 1a2b, note: "two\nlines", theirs: "a\nb"}
      labels: {app: web}
    spec:
      replicas: 5
      revisionHistoryLimit: 10
      strategy: {rollingUpdate: {maxSurge: 25%}}
      template:
        spec:
          args: [a, b]
          containers:
          - {name: web, image: "nginx:1", imagePullPolicy: Always, ports: [{containerPort: 80, protocol: TCP}], resources: {}}
          - {name: sidecar, image: "envoy:1"}
          finalizers: [mine, theirs]
    status: {readyReplicas: 5}
  ownership:
  - manager: kube-controller-manager
    fields: {"f:status": {"f:readyReplicas": {}}}
  - manager: "kubectl\nedit"
    fields:
      f:metadata: {f:annotations: {f:theirs: {}}}
      f:spec:
        f:replicas: {}
        f:template: {f:spec: {f:containers: {'k:{"name":"sidecar"}': {".": {}, f:name: {}, f:image: {}}}, f:finalizers: {'v:"theirs"': {}}}}
  - manager: portico-propagation
    fields:
      f:metadata: {f:annotations: {f:workload.crossplane.io/applied: {}, f:note: {}}, f:labels: {f:app: {}}}
      f:spec:
        f:template:
          f:spec:
            f:args: {}
            f:containers: {'k:{"name":"web"}': {".": {}, f:name: {}, f:image: {}, f:ports: {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, f:containerPort: {}}}}}
            f:finalizers: {'v:"mine"': {}}
`

func TestShow(t *testing.T) {
	cases := map[string]struct {
		reason, resource, output, want, remarks string
	}{
		"Marked": {
			reason: "A field of another manager has a comment with its owner.", resource: observed, output: "yaml",
			want: `apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    note: |-
      two
      lines
    # set by kubectl?edit
    theirs: |-
      a
      b
    workload.crossplane.io/applied: 1a2b # set by Portico
  labels:
    app: web
  name: web
  namespace: shop
  uid: u1 # set by the API server
spec:
  replicas: 5 # set by kubectl?edit
  revisionHistoryLimit: 10 # defaulted
  strategy:
    rollingUpdate:
      maxSurge: 25% # defaulted
  template:
    spec:
      args:
      - a
      - b
      containers:
      - image: nginx:1
        imagePullPolicy: Always # defaulted
        name: web
        ports:
        - containerPort: 80
          protocol: TCP # defaulted
        resources: {} # defaulted
      - image: envoy:1 # set by kubectl?edit
        name: sidecar # set by kubectl?edit
      finalizers:
      - mine
      - theirs # set by kubectl?edit
status:
  readyReplicas: 5 # set by kube-controller-manager
`,
			remarks: "# this is the last observed state: target eu-1 does not answer\n" +
				"# Deployment web was changed on target eu-1, and the change is kept: .spec.replicas\n",
		},
		"Known": {
			reason:   "Without the observed object, the desired one is shown, with its status and a command.",
			resource: `{metadata: {name: web, namespace: shop}, spec: {template: {apiVersion: v1, kind: Pod, metadata: {name: web, annotations: {workload.crossplane.io/hub-generation: "1"}}, spec: {"on": "yes"}}}, status: {remote: {phase: Running}}}`,
			output:   "yaml",
			want:     "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    workload.crossplane.io/hub-generation: \"1\"\n  name: web\nspec:\n  \"on\": \"yes\"\nstatus:\n  phase: Running\n",
			remarks: "# this is the desired object, with its status on the target\n" +
				"# to see the whole object: kubectl -n shop patch kar web --type=merge -p '{\"spec\":{\"observe\":\"Full\"}}'\n",
		},
		"Secret": {
			reason:   "No value of a Secret is shown, not even those in the template.",
			resource: `{metadata: {name: keys, ownerReferences: [{controller: true, kind: KubernetesApplication, name: shop}]}, spec: {template: {apiVersion: v1, kind: Secret, metadata: {name: keys}, data: {a: eA==}}}}`,
			output:   "yaml",
			want:     "apiVersion: v1\ndata:\n  a: <redacted>\nkind: Secret\nmetadata:\n  name: keys\n",
			remarks: "# this is the desired object, with its status on the target\n" +
				"# to see the whole object: set spec.observe to Full in template keys of KubernetesApplication shop\n",
		},
		"TooLarge": {
			reason:   "The comment says why the whole object is not shown.",
			resource: `{spec: {observe: Full, template: {kind: A}}, status: {conditions: [{type: Observed, status: "False", message: A is too large}]}}`,
			output:   "json",
			want:     "{\n    \"kind\": \"A\"\n}\n",
			remarks:  "# this is the desired object, with its status on the target\n# A is too large\n",
		},
		"NotYet": {
			reason: "The comment says that the object was not observed yet.", resource: `{spec: {observe: Full, template: {kind: A}}}`, output: "yaml", want: "kind: A\n",
			remarks: "# this is the desired object, with its status on the target\n# the object on the target was not observed yet\n",
		},
		"FrontDoor": {
			reason: "The command annotates the native object.", output: "yaml", want: "kind: A\n",
			resource: `{metadata: {namespace: shop, labels: {workload.crossplane.io/front-door: "true"}, ownerReferences: [{controller: true, kind: Deployment, name: web}]}, spec: {template: {kind: A}}}`,
			remarks: "# this is the desired object, with its status on the target\n" +
				"# to see the whole object: kubectl -n shop annotate deployment web workload.crossplane.io/observe=Full\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, remarks bytes.Buffer
			if err := printObject(resource(t, tc.resource), tc.output, &out, &remarks); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.remarks, remarks.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMarksAreComments parses the commented YAML, and compares it with the object.
func TestMarksAreComments(t *testing.T) {
	r := resource(t, observed)
	var out bytes.Buffer
	if err := printObject(r, "yaml", &out, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := yaml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(r.Status.Observed.Raw, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a mark changed the object (-want +got):\n%s", diff)
	}
}

func TestUnreadableOwners(t *testing.T) {
	r := resource(t, `{status: {observed: {kind: A}}}`)
	r.Status.Ownership = []v1alpha1.FieldOwner{{Manager: "a", Fields: apiextensionsv1.JSON{Raw: []byte(`[`)}}}
	var out bytes.Buffer
	if err := printObject(r, "yaml", &out, &bytes.Buffer{}); err != nil || out.String() != "kind: A\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestNamed(t *testing.T) {
	for args, want := range map[string]string{"deployment web": "deployment web", "kar/web": "kar web", "web": "", "/web": "", "a/": "", "a/b/c": "", "deployment a/b": ""} {
		kind, name, err := parseObjectArgs(strings.Fields(args))
		if got := strings.TrimSpace(kind + " " + name); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%q names %q, %v", args, got, err)
		}
	}
}

func TestSame(t *testing.T) {
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for named, want := range map[metav1.GroupKind]bool{
		{Group: "apps", Kind: "Deployment"}:    true,
		{Group: "other", Kind: "Deployment"}:   false,
		{Kind: "deployments"}:                  true,
		{Kind: "deployment"}:                   true,
		{Group: "apps", Kind: "deployments"}:   true,
		{Group: "other", Kind: "deployment"}:   false,
		{Kind: "Service"}:                      false,
		{Group: "apps", Kind: "statefulset"}:   false,
		{Group: "batch", Kind: "Deployment"}:   false,
		{Group: "apps", Kind: "DeploymentSet"}: false,
	} {
		if got := matchesKind(schema.GroupKind(named), deployment); got != want {
			t.Errorf("%v names a Deployment: %v", named, got)
		}
	}
}
