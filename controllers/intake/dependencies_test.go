package intake

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestDependenciesOf(t *testing.T) {
	pods := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {
  containers: [{name: web, envFrom: [{secretRef: {name: sql}}, {configMapRef: {name: maybe, optional: true}}]}]}}}}`)
	got := dependenciesOf(pods, "web-deployment", []string{"pull"}, nil)
	want := []v1alpha1.Dependency{
		{Kind: "ConfigMap", Name: "maybe", Optional: true},
		{Kind: "Secret", Name: "pull", Optional: true},
		{Kind: "Secret", Name: "sql"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want the dependencies of the Pods, and optional ones of their ServiceAccount\n%s", diff)
	}
	referred := []kinds.Reference{
		{Kind: "ConfigMap", Name: "web-deployment-maybe", Optional: true, Env: true},
		{Kind: "Secret", Name: "web-deployment-pull"},
		{Kind: "Secret", Name: "web-deployment-sql", Env: true},
	}
	if diff := cmp.Diff(referred, kinds.References(pods)); diff != "" {
		t.Errorf("want references to the copies\n%s", diff)
	}
}
