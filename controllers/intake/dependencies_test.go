package intake

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

func TestDependenciesOf(t *testing.T) {
	pods := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {
  containers: [{name: web, envFrom: [{secretRef: {name: sql}}, {configMapRef: {name: maybe, optional: true}}]}]}}}}`)
	got := dependenciesOf(pods, "web-deployment", dependencies{pullSecrets: []string{"pull"}}, nil)
	want := []v1alpha1.Dependency{
		{Kind: "ConfigMap", Name: "maybe", Optional: true},
		{Kind: "Secret", Name: "pull", Optional: true},
		{Kind: "Secret", Name: "sql"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want the dependencies of the Pods, and optional ones of their ServiceAccount\n%s", diff)
	}
	referred := []references.Reference{
		{Kind: "ConfigMap", Name: "web-deployment-maybe", Optional: true, Env: true},
		{Kind: "Secret", Name: "web-deployment-pull"},
		{Kind: "Secret", Name: "web-deployment-sql", Env: true},
	}
	if diff := cmp.Diff(referred, references.Of(pods), cmpopts.IgnoreFields(references.Reference{}, "Field")); diff != "" {
		t.Errorf("want references to the copies\n%s", diff)
	}
}

// stored returns a template as it is read from a resource.
func stored(t *testing.T, template *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if template == nil {
		return nil
	}
	raw, err := template.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return policies.TemplateObject(runtime.RawExtension{Raw: raw})
}

// TestServiceAccount is about Pods that name a ServiceAccount with an image pull secret.
func TestServiceAccount(t *testing.T) {
	const pods = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, template: {spec: {serviceAccountName: ACCOUNT, containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]}}}}`
	template := func(edits ...string) *unstructured.Unstructured {
		return object(t, strings.NewReplacer(append(edits, "ACCOUNT", "builder")...).Replace(pods))
	}
	injected := template("}]}]}", `}]}], imagePullSecrets: [{name: web-deployment-pull}]}`)
	account := v1alpha1.Dependency{Kind: "ServiceAccount", Name: "builder", Shared: true}
	pull := v1alpha1.Dependency{Kind: "Secret", Name: "pull", Optional: true}
	for name, tc := range map[string]struct {
		reason             string
		template, previous *unstructured.Unstructured
		want               []v1alpha1.Dependency
		sent               *unstructured.Unstructured
	}{
		"New":     {reason: "The ServiceAccount brings its pull secrets.", template: template(), want: []v1alpha1.Dependency{account}, sent: template()},
		"Default": {reason: "The ServiceAccount default is not sent.", template: template("ACCOUNT", "default"), want: []v1alpha1.Dependency{pull}, sent: template("ACCOUNT", "default", "}]}]}", `}]}], imagePullSecrets: [{name: web-deployment-pull}]}`)},
		"Before":  {reason: "An update of Portico replaces no Pod.", template: template(), previous: injected, want: []v1alpha1.Dependency{pull, account}, sent: injected},
		"Scaled":  {reason: "A change outside the Pod template replaces no Pod.", template: template("replicas: 1", "replicas: 2"), previous: injected, want: []v1alpha1.Dependency{pull, account}, sent: template("replicas: 1", "replicas: 2", "}]}]}", `}]}], imagePullSecrets: [{name: web-deployment-pull}]}`)},
		"Changed": {reason: "Pods that are replaced anyway get the secrets of their ServiceAccount.", template: template("web:1", "web:2"), previous: injected, want: []v1alpha1.Dependency{account}, sent: template("web:1", "web:2")},
	} {
		t.Run(name, func(t *testing.T) {
			got := dependenciesOf(tc.template, "web-deployment", dependencies{pullSecrets: []string{"pull"}}, stored(t, tc.previous))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.sent.Object, tc.template.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
