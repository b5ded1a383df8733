package intake

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// deployment returns a Deployment whose Pods have a spec, in YAML.
func deployment(t *testing.T, pods string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, template: {spec: `+pods+`}}}`)
}

func TestDependenciesOf(t *testing.T) {
	const (
		plain    = `{containers: [{name: web, ports: [{containerPort: 80}], envFrom: [{secretRef: {name: sql}}, {configMapRef: {name: maybe, optional: true}}]}]}`
		pulls    = `{containers: [{name: web, ports: [{containerPort: 80}], envFrom: [{secretRef: {name: sql}}, {configMapRef: {name: maybe, optional: true}}]}], imagePullSecrets: [{name: pull}]}`
		copies   = `{containers: [{name: web, ports: [{containerPort: 80}], envFrom: [{secretRef: {name: web-deployment-sql}}, {configMapRef: {name: web-deployment-maybe, optional: true}}]}], imagePullSecrets: [{name: web-deployment-pull}]}`
		copiedDB = `{containers: [{name: web, ports: [{containerPort: 80}], envFrom: [{secretRef: {name: web-deployment-sql}}, {configMapRef: {name: maybe, optional: true}}]}], imagePullSecrets: [{name: pull}]}`
	)
	withAccount := func(pods string) string {
		return strings.Replace(pods, "{containers", "{serviceAccountName: builder, containers", 1)
	}
	dependency := func(kind, name string, optional bool, how string) v1alpha1.Dependency {
		return v1alpha1.Dependency{Kind: kind, Name: name, Optional: optional, Shared: how == "shared", Native: how == "native"}
	}
	list := func(sql, maybe, pull string) []v1alpha1.Dependency {
		return []v1alpha1.Dependency{dependency("ConfigMap", "maybe", true, maybe), dependency("Secret", "pull", true, pull), dependency("Secret", "sql", false, sql)}
	}
	account := v1alpha1.Dependency{Kind: "ServiceAccount", Name: "builder", Shared: true}
	for name, tc := range map[string]struct {
		reason        string
		native        string
		found         dependencies
		sent          string // the template of the stored resource
		had           []v1alpha1.Dependency
		want          []v1alpha1.Dependency
		wantPods      string
		otherReplicas bool
	}{
		"New": {reason: "All keep their names.", native: plain, want: list("shared", "shared", "shared"), wantPods: pulls},
		"Account": {reason: "A ServiceAccount has its own pull secrets.", native: withAccount(plain), wantPods: withAccount(plain),
			want: []v1alpha1.Dependency{dependency("ConfigMap", "maybe", true, "shared"), dependency("Secret", "sql", false, "shared"), account}},
		"RBAC": {reason: "Its Roles are requested.", native: withAccount(`{containers: []}`), found: dependencies{rbac: true}, wantPods: withAccount(`{containers: []}`),
			want: []v1alpha1.Dependency{{Kind: "ServiceAccount", Name: "builder", Shared: true, RBAC: true}}},
		"Labelled": {reason: "A labelled Secret has its own resource.", native: plain, found: dependencies{native: dependencySet{{"Secret", "sql"}: true}},
			want: list("native", "shared", "shared"), wantPods: pulls},
		"Taken": {reason: "A Secret whose name has another owner on the target is copied.", native: plain, found: dependencies{taken: dependencySet{{"Secret", "sql"}: true}},
			want: list("copied", "shared", "shared"), wantPods: copiedDB},
		"TakenNow": {reason: "The name has another owner on a target to which the object moves.", native: plain, found: dependencies{taken: dependencySet{{"Secret", "sql"}: true}},
			sent: pulls, had: list("shared", "shared", "shared"), want: list("copied", "shared", "shared"), wantPods: copiedDB},
		"Copies": {reason: "An update of Portico replaces no Pod.", native: plain, sent: copies, had: list("copied", "copied", "copied"),
			want: list("copied", "copied", "copied"), wantPods: copies},
		"CopiesOfAccount": {reason: "The Pods keep the pull secrets of their ServiceAccount.", native: withAccount(plain), sent: withAccount(copies), had: list("copied", "copied", "copied"),
			want: append(list("copied", "copied", "copied"), account), wantPods: withAccount(copies)},
		"Scaled": {reason: "A change outside the Pod template replaces no Pod.", native: plain, sent: copies, had: list("copied", "copied", "copied"), otherReplicas: true,
			want: list("copied", "copied", "copied"), wantPods: copies},
		"Changed": {reason: "Pods that are replaced refer to the own names.", native: strings.Replace(plain, "name: web", "name: api", 1), sent: copies, had: list("copied", "copied", "copied"),
			want: list("shared", "shared", "shared"), wantPods: strings.Replace(pulls, "name: web", "name: api", 1)},
		"Mixed": {reason: "Only the taken name stays a copy.", native: plain, sent: copiedDB, had: list("copied", "shared", "shared"), want: list("copied", "shared", "shared"), wantPods: copiedDB},
	} {
		t.Run(name, func(t *testing.T) {
			template, want := deployment(t, tc.native), deployment(t, tc.wantPods)
			var current *v1alpha1.KubernetesApplicationResource
			if tc.sent != "" {
				raw, err := deployment(t, tc.sent).MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				current = &v1alpha1.KubernetesApplicationResource{Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{Raw: raw}, Dependencies: tc.had}}
			}
			if tc.otherReplicas {
				for _, o := range []*unstructured.Unstructured{template, want} {
					if err := unstructured.SetNestedField(o.Object, int64(3), "spec", "replicas"); err != nil {
						t.Fatal(err)
					}
				}
			}
			tc.found.pullSecrets = []string{"pull"}
			got := dependenciesOf(template, "web-deployment", tc.found, current)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(want.Object, template.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
