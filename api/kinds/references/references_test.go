package references

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// podsOf returns a Deployment whose Pods have a spec, in YAML.
func podsOf(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	var pod map[string]any
	if err := yaml.Unmarshal([]byte(spec), &pod); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"template": map[string]any{"spec": pod}},
	}}
}

func sent(r Reference) string { return CopyName("kar", r.Name) }

func TestReferences(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   []Reference
	}{
		"Nothing": {
			reason: "A Pod without references needs nothing.",
			spec:   `containers: [{name: a, image: b, env: [{name: x, value: secret}]}]`,
		},
		"Optional": {
			reason: "A reference is optional only if it is optional everywhere.",
			spec: `
containers:
- env:
  - {name: a, valueFrom: {secretKeyRef: {name: both, key: k, optional: true}}}
  - {name: b, valueFrom: {secretKeyRef: {name: never, key: k, optional: true}}}
volumes:
- {name: v, secret: {secretName: both}}`,
			want: []Reference{{Kind: "Secret", Name: "both", Env: true}, {Kind: "Secret", Name: "never", Optional: true, Env: true}},
		},
		"SameName": {
			reason: "A Secret and a ConfigMap with the same name are two references.",
			spec:   `{containers: [], volumes: [{secret: {secretName: a}}, {configMap: {name: a, optional: true}}]}`,
			want:   []Reference{{Kind: "ConfigMap", Name: "a", Optional: true}, {Kind: "Secret", Name: "a"}},
		},
		"RootCA": {
			reason: "The ConfigMap with the cluster's CA exists on each cluster.",
			spec:   `{containers: [], volumes: [{projected: {sources: [{serviceAccountToken: {path: token}}, {configMap: {name: kube-root-ca.crt}}]}}]}`,
		},
		"Malformed": {
			reason: "Values that the API server would refuse are skipped.",
			spec:   `{containers: [1, {env: {}, envFrom: [null, {secretRef: x}]}], volumes: {}, imagePullSecrets: [{name: 7}, {name: ""}]}`,
		},
		"NoPods": {
			reason: "A template without containers is not a Pod template.",
			spec:   `{volumes: [{secret: {secretName: a}}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Of(podsOf(t, tc.spec)), cmpopts.IgnoreFields(Reference{}, "Field")); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRewrite goes through every place that a Pod can refer from. The golden
// file shows the Pod as written, its references, and the Pod as sent.
func TestRewrite(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "references.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(data), "\n---\n")
	if len(documents) != 3 {
		t.Fatalf("want the Pod, what it refers to, and the Pod sent; got %d documents", len(documents))
	}
	pods := podsOf(t, documents[0])
	var want []Reference
	if err := yaml.Unmarshal([]byte(documents[1]), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, Of(pods)); diff != "" {
		t.Errorf("references: %s", diff)
	}
	Rewrite(pods, sent)
	if diff := cmp.Diff(podsOf(t, documents[2]).Object, pods.Object); diff != "" {
		t.Errorf("rewritten: %s", diff)
	}
}

func TestPullSecrets(t *testing.T) {
	cases := map[string]struct {
		reason     string
		spec, want string
		account    string
	}{
		"None": {
			reason: "A Pod without pull secrets gets those of its ServiceAccount.",
			spec:   `{containers: [], serviceAccountName: builder}`, account: "builder",
			want: `{containers: [], serviceAccountName: builder, imagePullSecrets: [{name: registry}]}`,
		},
		"Own": {
			reason: "A Pod with pull secrets gets no others.",
			spec:   `{containers: [], imagePullSecrets: [{name: mine}]}`, account: "default",
			want: `{containers: [], imagePullSecrets: [{name: mine}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := podsOf(t, tc.spec)
			if got := ServiceAccount(pods); got != tc.account {
				t.Errorf("ServiceAccount: got %q, want %q", got, tc.account)
			}
			SetPullSecrets(pods, []string{"registry"})
			if diff := cmp.Diff(podsOf(t, tc.want).Object, pods.Object); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCopyName(t *testing.T) {
	if got := CopyName("wordpress-demo-deployment", "sql"); got != "wordpress-demo-deployment-sql" {
		t.Errorf("S0 names it otherwise: %s", got)
	}
	long := strings.Repeat("a", validation.DNS1123SubdomainMaxLength)
	a, b := CopyName(long, "a"), CopyName(long, "b")
	if a == b || len(validation.IsDNS1123Subdomain(a)) > 0 {
		t.Errorf("want two names that are allowed, got %s and %s", a, b)
	}
}

// FuzzRewrite rewrites and rewrites back, which has to give the same object.
func FuzzRewrite(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "references.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, document := range strings.Split(string(data), "\n---\n") {
		if seed, err := yaml.YAMLToJSON([]byte(document)); err == nil {
			f.Add(seed)
		}
	}
	f.Add([]byte(`{"containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"a","optional":true}}}]}],"volumes":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var spec map[string]any
		if json.Unmarshal(data, &spec) != nil {
			return
		}
		pods := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
		before, references := pods.DeepCopy(), Of(pods)
		Rewrite(pods, func(r Reference) string { return "x" + r.Name })
		renamed := Of(pods)
		if len(renamed) != len(references) {
			t.Fatalf("had %v, has %v", references, renamed)
		}
		Rewrite(pods, func(r Reference) string { return strings.TrimPrefix(r.Name, "x") })
		if diff := cmp.Diff(before.Object, pods.Object); diff != "" {
			t.Fatal(diff)
		}
	})
}
