package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestDependenciesOf(t *testing.T) {
	resource := &v1alpha1.KubernetesApplicationResource{}
	resource.Spec.Secrets = []corev1.LocalObjectReference{{Name: "sql"}, {Name: ""}}
	resource.Spec.Dependencies = []v1alpha1.Dependency{
		{Kind: "Secret", Name: "sql", Optional: true}, {Kind: "Secret", Name: "extra", Optional: true}, {Kind: "ConfigMap", Name: "sql"},
	}
	want := []v1alpha1.Dependency{{Kind: "ConfigMap", Name: "sql"}, {Kind: "Secret", Name: "extra", Optional: true}, {Kind: "Secret", Name: "sql"}}
	if diff := cmp.Diff(want, DependenciesOf(resource)); diff != "" {
		t.Errorf("duplicate dependencies are not merged\n%s", diff)
	}
}

func TestContentOf(t *testing.T) {
	metadata := metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}}
	cases := map[string]struct {
		reason string
		source client.Object
		want   map[string]any
		kept   bool
	}{
		"Secret": {
			reason: "The data is sent, and the type, which is Opaque by default.",
			source: &corev1.Secret{ObjectMeta: metadata, Data: map[string][]byte{"a": []byte("b")}, Immutable: new(true)},
			want:   map[string]any{"type": "Opaque", "data": map[string]any{"a": "Yg=="}},
		},
		"ConfigMap": {
			reason: "Both kinds of data are sent.",
			source: &corev1.ConfigMap{ObjectMeta: metadata, Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"c": {0}}},
			want:   map[string]any{"data": map[string]any{"a": "b"}, "binaryData": map[string]any{"c": "AA=="}},
		},
		"Token": {
			reason: "A token of the hub is not sent.",
			source: &corev1.Secret{ObjectMeta: metadata, Type: corev1.SecretTypeServiceAccountToken},
			want:   map[string]any{"type": "kubernetes.io/service-account-token"}, kept: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, kept := ContentOf(tc.source)
			if diff := cmp.Diff(tc.want, got); diff != "" || (kept != "") != tc.kept {
				t.Errorf("%s\nkept: %q\n%s", tc.reason, kept, diff)
			}
		})
	}
}

func TestDesiredCopy(t *testing.T) {
	resource := templated(t, "{}")
	content := map[string]any{"type": "Opaque", "data": map[string]any{"a": "Yg=="}}
	l := Dependency{Dependency: v1alpha1.Dependency{Kind: "Secret", Name: "sql"}, CopyName: "settings-sql", Content: content, Digest: ContentDigest("s1", content)}
	made := DesiredCopy(resource, l, "shop", hubID)
	if !IsOwned(made, resource, hubID) {
		t.Error("a copy has to be its resource's")
	}
	if ContentDigest("s1", CopiedFields(made)) != l.Digest {
		t.Error("the copy of something is told from it")
	}
	if ContentDigest("s2", content) == l.Digest {
		t.Error("a digest that depends on nothing but the content can be guessed at")
	}
	own := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "metadata": map[string]any{"name": "settings-own", "namespace": "shop"}}}
	elsewhere := DesiredCopy(resource, l, "before", hubID)
	got := ExcessCopies([]*unstructured.Unstructured{made, own, elsewhere}, []Dependency{l}, "shop")
	if len(got) != 1 || got[0] != elsewhere {
		t.Errorf("want the copy in the wrong namespace pruned, and not the object; got %v", got)
	}
	if got := ExcessCopies([]*unstructured.Unstructured{made, own}, nil, ""); len(got) != 1 || got[0] != made {
		t.Errorf("want the unneeded copies pruned, got %v", got)
	}
}

func TestSetEnvironmentDigest(t *testing.T) {
	kind := "Deployment"
	const template = `{apiVersion: apps/v1, metadata: {name: web}, spec: {template: {spec: {
  containers: [{name: a, env: [{name: x, valueFrom: {secretKeyRef: {name: settings-sql, key: k}}}]}],
  volumes: [{name: v, secret: {secretName: settings-tls}}]}}}}`
	stamp := func(roll, sql, tls string) string {
		object := &unstructured.Unstructured{Object: fieldsOf(t, template)}
		object.SetKind(kind)
		resource := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.RollAnnotation: roll}}
		SetEnvironmentDigest(object, resource, []Dependency{
			{Dependency: v1alpha1.Dependency{Kind: "Secret", Name: "sql"}, CopyName: "settings-sql", Digest: sql},
			{Dependency: v1alpha1.Dependency{Kind: "Secret", Name: "tls"}, CopyName: "settings-tls", Digest: tls},
		})
		value, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", v1alpha1.EnvironmentAnnotation)
		return value
	}
	first := stamp("true", "1", "1")
	if first == "" || first == stamp("true", "2", "1") {
		t.Error("want new Pods when data for their start changes")
	}
	if first != stamp("true", "1", "2") {
		t.Error("a volume follows by itself; want the same Pods")
	}
	if stamp("false", "1", "1") != "" || stamp("", "1", "1") != "" {
		t.Error("there are new Pods without a change")
	}
	if kind = "ReplicaSet"; stamp("true", "1", "1") != "" {
		t.Error("a ReplicaSet does not replace its Pods; want its template unchanged")
	}
	if kind = "StatefulSet"; stamp("true", "1", "1") != first {
		t.Error("want new Pods of a StatefulSet, too")
	}
}

func TestProblemOf(t *testing.T) {
	_, why := ProblemOf(Dependency{Dependency: v1alpha1.Dependency{Kind: "Secret", Name: "sql"}}, "shop")
	if !strings.Contains(why, "Secret sql does not exist in namespace shop") {
		t.Errorf("want the missing object and its namespace, got %q", why)
	}
}
