package policies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

func TestValidateApplication(t *testing.T) {
	right := `{spec: {targetSelector: {matchLabels: {env: prod}}, resourceTemplates: [
  {metadata: {name: web}, spec: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}}},
  {metadata: {name: web-svc}, spec: {template: {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}}}}]}}`
	twoOfOneName := `{spec: {resourceTemplates: [
  {metadata: {name: web}, spec: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}}},
  {metadata: {name: web}, spec: {template: {apiVersion: v1, kind: Service, metadata: {name: web}}}}]}}`

	cases := map[string]struct {
		reason   string
		old, app string
		want     []problem
	}{
		"Right": {reason: "Two kinds with the same name are two objects.", app: right},
		"Empty": {reason: "An application that Portico makes has no templates.", app: `{spec: {}}`},
		"UniqueNames": {
			reason: "The names of templates are unique.",
			app:    twoOfOneName,
			want:   []problem{{field.ErrorTypeDuplicate, "spec.resourceTemplates[1].metadata.name"}},
		},
		"UniqueNamesBefore": {
			reason: "An application with an old error may be edited elsewhere.",
			old:    twoOfOneName,
			app:    twoOfOneName,
		},
		"UniqueNamesMoved": {
			reason: "An old error may have another index.",
			old: `{spec: {resourceTemplates: [
  {metadata: {name: other}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}},
  {metadata: {name: web}, spec: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}}},
  {metadata: {name: web}, spec: {template: {apiVersion: v1, kind: Service, metadata: {name: web}}}}]}}`,
			app: twoOfOneName,
		},
		"NotAName": {
			reason: "A template's name must be a valid name of an object.",
			app:    `{spec: {resourceTemplates: [{metadata: {name: Web_1}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}]}}`,
			want:   []problem{{field.ErrorTypeInvalid, "spec.resourceTemplates[0].metadata.name"}},
		},
		"OneObjectTwice": {
			reason: "Two templates for one object overwrite each other, also with different versions.",
			app: `{spec: {resourceTemplates: [
  {metadata: {name: a}, spec: {template: {apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: shop}}}},
  {metadata: {name: b}, spec: {template: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: shop}}}}]}}`,
			want: []problem{{field.ErrorTypeInvalid, "spec.resourceTemplates[1].spec.template"}},
		},
		"DefaultNamespace": {
			reason: "An object without a namespace is in namespace default.",
			app: `{spec: {resourceTemplates: [
  {metadata: {name: a}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}},
  {metadata: {name: b}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: default}}}}]}}`,
			want: []problem{{field.ErrorTypeInvalid, "spec.resourceTemplates[1].spec.template"}},
		},
		"AnotherObject": {
			reason: "A template must keep its object, which would be orphaned.",
			old:    right,
			app: `{spec: {targetSelector: {matchLabels: {env: prod}}, resourceTemplates: [
  {metadata: {name: web}, spec: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2}}}},
  {metadata: {name: web-svc}, spec: {template: {apiVersion: v1, kind: Service, metadata: {name: front, namespace: shop}}}}]}}`,
			want: []problem{{field.ErrorTypeForbidden, "spec.resourceTemplates[1].spec.template.metadata.name"}},
		},
		"Metadata": {
			reason: "A template's metadata must be valid, and must not name another application.",
			app: `{spec: {resourceTemplates: [{metadata: {name: a, labels: {"workload.crossplane.io/application": b, c: "not a value"}, annotations: {"a b": c}},
  spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}]}}`,
			want: []problem{
				{field.ErrorTypeInvalid, "spec.resourceTemplates[0].metadata.labels"},
				{field.ErrorTypeInvalid, "spec.resourceTemplates[0].metadata.annotations"},
				{field.ErrorTypeForbidden, "spec.resourceTemplates[0].metadata.labels[workload.crossplane.io/application]"},
			},
		},
		"LongName": {
			reason: "The name of an application with templates becomes a label.",
			app: `{metadata: {name: "` + strings.Repeat("a", 64) + `"}, spec: {resourceTemplates: [
  {metadata: {name: a}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}]}}`,
			want: []problem{{field.ErrorTypeInvalid, "metadata.name"}},
		},
		"Selectors": {
			reason: "An invalid selector is an error.",
			app: `{spec: {targetSelector: {matchLabels: {env: not a value}},
  resourceSelector: {matchExpressions: [{key: app, operator: In}]}}}`,
			want: []problem{
				{field.ErrorTypeInvalid, "spec.targetSelector.matchLabels"},
				{field.ErrorTypeRequired, "spec.resourceSelector.matchExpressions[0].values"},
			},
		},
		"Templates": {
			reason: "All templates are checked, not only the first.",
			app: `{spec: {resourceTemplates: [
  {metadata: {name: a}, spec: {template: {kind: ConfigMap, metadata: {name: c}}}},
  {metadata: {name: b}, spec: {template: {apiVersion: v1, metadata: {name: c}}}},
  {metadata: {name: c}, spec: {}}]}}`,
			want: []problem{
				{field.ErrorTypeRequired, "spec.resourceTemplates[0].spec.template.apiVersion"},
				{field.ErrorTypeRequired, "spec.resourceTemplates[1].spec.template.kind"},
				{field.ErrorTypeRequired, "spec.resourceTemplates[2].spec.template"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ValidateApplication(read[v1alpha2.KubernetesApplication](t, tc.app), read[v1alpha2.KubernetesApplication](t, tc.old))
			if diff := cmp.Diff(tc.want, problems(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidateResource(t *testing.T) {
	const template = "spec.template."
	right := `{spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: b}}}}`
	withStatus := `{spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, status: {}}}}`

	cases := map[string]struct {
		reason        string
		old, resource string
		want          []problem
	}{
		"Right":         {reason: "A template needs an apiVersion, a kind and a name.", resource: right},
		"Changed":       {reason: "The object's data may change.", old: `{spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}}}`, resource: right},
		"Empty":         {reason: "A template is required.", resource: `{spec: {}}`, want: []problem{{field.ErrorTypeRequired, "spec.template"}}},
		"NotAnObject":   {reason: "A template must be an object.", resource: `{spec: {template: [a]}}`, want: []problem{{field.ErrorTypeRequired, "spec.template"}}},
		"GeneratedName": {reason: "An object with a generated name could not be found again.", resource: `{spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {generateName: c-}}}}`, want: []problem{{field.ErrorTypeRequired, template + "metadata.name"}}},
		"OthersFields": {
			reason:   "Fields that a cluster sets have no meaning on another cluster.",
			resource: `{spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, uid: u, resourceVersion: "1", managedFields: [], ownerReferences: [], finalizers: []}, status: {}}}}`,
			want: []problem{
				{field.ErrorTypeForbidden, template + "metadata.uid"},
				{field.ErrorTypeForbidden, template + "metadata.resourceVersion"},
				{field.ErrorTypeForbidden, template + "metadata.managedFields"},
				{field.ErrorTypeForbidden, template + "metadata.ownerReferences"},
				{field.ErrorTypeForbidden, template + "metadata.finalizers"},
				{field.ErrorTypeForbidden, template + "status"},
			},
		},
		"Selector":        {reason: "An invalid selector is an error.", resource: `{spec: {targetSelector: {matchExpressions: [{key: env, operator: Like}]}, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}`, want: []problem{{field.ErrorTypeInvalid, "spec.targetSelector.matchExpressions[0].operator"}}},
		"NamespaceMoves":  {reason: "The object in the old namespace would be left behind.", old: right, resource: `{spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}}}`, want: []problem{{field.ErrorTypeForbidden, template + "metadata.namespace"}}},
		"NamespaceGoes":   {reason: "Without a namespace the object in the old one would be left behind.", old: right, resource: `{spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}`, want: []problem{{field.ErrorTypeForbidden, template + "metadata.namespace"}}},
		"WrongBefore":     {reason: "An old error may stay, because the scheduler must be able to write.", old: withStatus, resource: withStatus},
		"PutRight":        {reason: "An old error may be corrected.", old: withStatus, resource: right},
		"WrongElsewhere":  {reason: "A new error next to an old one is returned.", old: withStatus, resource: `{spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u}, status: {}}}}`, want: []problem{{field.ErrorTypeForbidden, template + "metadata.uid"}}},
		"UnreadableOnce":  {reason: "A template that could not be read had no namespace to keep.", old: `{spec: {}}`, resource: right},
		"UnreadableTwice": {reason: "A template that could not be read may stay.", old: `{spec: {}}`, resource: `{spec: {}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ValidateResource(read[v1alpha1.KubernetesApplicationResource](t, tc.resource), read[v1alpha1.KubernetesApplicationResource](t, tc.old))
			if diff := cmp.Diff(tc.want, problems(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidateTarget(t *testing.T) {
	cases := map[string]struct {
		reason      string
		old, target string
		want        []problem
	}{
		"Right":       {reason: "A target names its connection Secret.", target: `{spec: {connectionSecretRef: {name: eu-1}}}`},
		"Cluster":     {reason: "A target may name a cluster, whose Secret is found.", target: `{spec: {clusterRef: {apiVersion: gcp.example.org/v1, kind: GKECluster, name: dev}}}`},
		"NoSecret":    {reason: "A target must name a Secret or a cluster.", target: `{spec: {}}`, want: []problem{{field.ErrorTypeRequired, "spec.connectionSecretRef.name"}}},
		"Both":        {reason: "A target may name both. The Secret has priority.", target: `{spec: {clusterRef: {apiVersion: gcp.example.org/v1, kind: GKECluster, name: dev}, connectionSecretRef: {name: eu-1}}}`},
		"Core":        {reason: "A kind of the core API is not a managed cluster.", target: `{spec: {clusterRef: {apiVersion: v1, kind: Node, name: dev}}}`, want: []problem{{field.ErrorTypeInvalid, "spec.clusterRef.apiVersion"}}},
		"NoVersion":   {reason: "The apiVersion must be valid.", target: `{spec: {clusterRef: {apiVersion: a/b/c, kind: GKECluster, name: dev}}}`, want: []problem{{field.ErrorTypeInvalid, "spec.clusterRef.apiVersion"}}},
		"NoName":      {reason: "An empty name is invalid.", target: `{spec: {connectionSecretRef: {}}}`, want: []problem{{field.ErrorTypeRequired, "spec.connectionSecretRef.name"}}},
		"Taken":       {reason: "The Secret may not be removed.", old: `{spec: {connectionSecretRef: {name: eu-1}}}`, target: `{spec: {}}`, want: []problem{{field.ErrorTypeRequired, "spec.connectionSecretRef.name"}}},
		"WrongBefore": {reason: "A target with an old error may be labelled.", old: `{spec: {}}`, target: `{spec: {}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ValidateTarget(read[v1alpha1.KubernetesTarget](t, tc.target), read[v1alpha1.KubernetesTarget](t, tc.old))
			if diff := cmp.Diff(tc.want, problems(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
