package intake

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
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
		"PullSecret": {reason: "The ServiceAccount default got a pull secret.", native: plain, sent: plain, had: list("shared", "shared", "shared"), want: list("shared", "shared", "shared"), wantPods: pulls},
		"LabelledLater": {reason: "A label for the Secret replaces no Pod.", native: plain, found: dependencies{native: dependencySet{{"Secret", "sql"}: true}}, sent: copies, had: list("copied", "copied", "copied"),
			want: list("copied", "copied", "copied"), wantPods: copies},
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

// TestDependenciesOfIngress shows that an Ingress has copies.
func TestDependenciesOfIngress(t *testing.T) {
	ingress := object(t, `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {tls: [{secretName: tls}]}}`)
	want := []v1alpha1.Dependency{{Kind: "Secret", Name: "tls", Optional: true}}
	if diff := cmp.Diff(want, dependenciesOf(ingress, "web-ingress", dependencies{}, nil)); diff != "" {
		t.Errorf("only its own resource can leave out a Secret that is not for TLS (-want +got):\n%s", diff)
	}
}

// senderOf returns the resource that sends Secret sql to target dev.
func senderOf(change func(*v1alpha1.KubernetesApplicationResource)) *v1alpha1.KubernetesApplicationResource {
	out := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: "sql.dev-secret",
		Labels:          map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor, v1alpha1.DependencyLabel: v1alpha1.DependencyShared},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "sql", UID: "s1", Controller: new(true)}},
	}}
	out.Status.RemoteUID = "r1"
	out.Status.Conditions = []metav1.Condition{{Type: v1alpha1.Synced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied}}
	change(out)
	return out
}

func hubWithResources(t *testing.T, resources ...client.Object) client.Reader {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(reconcilertest.Scheme(t, v1alpha1.AddToScheme)).WithObjects(resources...).Build()
}

func TestFindTaken(t *testing.T) {
	failed := func(reason string) func(*v1alpha1.KubernetesApplicationResource) {
		return func(r *v1alpha1.KubernetesApplicationResource) {
			r.Status.Conditions[0].Status, r.Status.Conditions[0].Reason = metav1.ConditionFalse, reason
		}
	}
	taken := dependencySet{{"Secret", "sql"}: true}
	for name, tc := range map[string]struct {
		reason string
		target string
		hub    []client.Object
		want   dependencySet
	}{
		"New":         {reason: "The name is tried first.", target: "dev", want: dependencySet{}},
		"Applied":     {reason: "The object is on the target under its name.", target: "dev", hub: []client.Object{senderOf(func(*v1alpha1.KubernetesApplicationResource) {})}, want: dependencySet{}},
		"Conflict":    {reason: "The target has an object of another owner.", target: "dev", hub: []client.Object{senderOf(failed(v1alpha1.ReasonOwnershipConflict))}, want: taken},
		"NotAllowed":  {reason: "A copy would not be allowed either.", target: "dev", hub: []client.Object{senderOf(failed(v1alpha1.ReasonNotAllowed))}, want: dependencySet{}},
		"OtherTarget": {reason: "The name is free on another target.", target: "prod", hub: []client.Object{senderOf(failed(v1alpha1.ReasonOwnershipConflict))}, want: dependencySet{}},
		"OtherSecret": {reason: "The labelled Secret sql.dev has a resource of that name.", target: "dev", want: taken, hub: []client.Object{senderOf(func(r *v1alpha1.KubernetesApplicationResource) {
			r.OwnerReferences[0].Name = "sql.dev"
			delete(r.Labels, v1alpha1.DependencyLabel)
		})}},
		"NoTarget": {reason: "The application has no target yet."},
	} {
		t.Run(name, func(t *testing.T) {
			native := deployment(t, `{containers: [{name: web, envFrom: [{secretRef: {name: sql}}]}]}`)
			native.SetNamespace("team-a")
			var target *v1alpha1.TargetReference
			if tc.target != "" {
				target = &v1alpha1.TargetReference{Name: tc.target}
			}
			got, err := findTaken(t.Context(), hubWithResources(t, tc.hub...), native, target, nil)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s (-want +got, %v):\n%s", tc.reason, err, diff)
			}
		})
	}
}
