package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestLocalize(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		want   string // empty if it is left out
	}{
		"Deployment": {
			reason: "The hub has no nodes for the manager's Pods.",
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: portico}}`,
		},
		"Service": {
			reason: "The Service of the manager has no Pods.",
			object: `{apiVersion: v1, kind: Service, metadata: {name: portico-webhook}}`,
		},
		"Role": {
			reason: "The rights of the manager stay.",
			object: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: portico}}`,
			want:   `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: portico}}`,
		},
		"Webhook": {
			reason: "Webhooks keep their paths and other fields.",
			object: `
kind: MutatingWebhookConfiguration
webhooks:
- name: a
  failurePolicy: Fail
  clientConfig: {service: {name: portico-webhook, namespace: portico-system, path: /mutate/a}}
- name: b
  clientConfig: {caBundle: Cg==, service: {name: portico-webhook, namespace: portico-system, path: /mutate/b}}
`,
			want: `
kind: MutatingWebhookConfiguration
webhooks:
- name: a
  failurePolicy: Fail
  clientConfig: {url: "https://127.0.0.1:1/mutate/a"}
- name: b
  clientConfig: {caBundle: Cg==, url: "https://127.0.0.1:1/mutate/b"}
`,
		},
		"Conversion": {
			reason: "The URL of a conversion webhook is replaced too.",
			object: `
kind: CustomResourceDefinition
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: portico-webhook, namespace: portico-system, path: /convert}}}}}
`,
			want: `
kind: CustomResourceDefinition
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: "https://127.0.0.1:1/convert"}}}}
`,
		},
		"NoConversion": {
			reason: "A definition without conversion stays.",
			object: `{kind: CustomResourceDefinition, spec: {group: example.org}}`,
			want:   `{kind: CustomResourceDefinition, spec: {group: example.org}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.object)
			before := object.DeepCopy()
			got, err := Localize([]*unstructured.Unstructured{object}, "https://127.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			var want []*unstructured.Unstructured
			if tc.want != "" {
				want = append(want, parse(t, tc.want))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the argument changed (-before +after):\n%s", diff)
			}
		})
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}
