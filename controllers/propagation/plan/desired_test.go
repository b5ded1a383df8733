package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestObservedDigest(t *testing.T) {
	object := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "settings", "resourceVersion": value + "1"},
			"data":     map[string]any{"color": value},
		}}
	}
	paths := []string{".data.color"}
	if ObservedDigest(object("blue"), nil) != "" {
		t.Error("where nothing differs there is nothing to tell apart")
	}
	if ObservedDigest(object("blue"), paths) == ObservedDigest(object("red"), paths) {
		t.Error("a kind without a generation that drifted again at the same path went unseen")
	}
	later := object("blue")
	later.SetResourceVersion("2")
	if ObservedDigest(object("blue"), paths) != ObservedDigest(later, paths) {
		t.Error("a write that changed nothing else was taken for drift")
	}
}

const hubID = "hub-1"

func fieldsOf(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(append(append([]byte(`{"kind":"x","of":`), data...), '}')); err != nil {
		t.Fatal(err)
	}
	of, _ := out.Object["of"].(map[string]any)
	return of
}

func templated(t testing.TB, template string) *v1alpha1.KubernetesApplicationResource {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(template))
	if err != nil {
		t.Fatal(err)
	}
	return &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "settings", UID: "u1"},
		Spec:       v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{Raw: data}},
	}
}

func TestDesired(t *testing.T) {
	const want = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {app: web, workload.crossplane.io/hub-namespace: team-a, workload.crossplane.io/managed-by: hub-1}, annotations: {
  note: mine,
  kubernetesapplicationresource.workload.crossplane.io/uid: u1,
  kubernetesapplicationresource.workload.crossplane.io/namespace: team-a,
  kubernetesapplicationresource.workload.crossplane.io/name: settings}}, data: {a: b}}`
	cases := map[string]struct {
		reason, template, want string
	}{
		"Marked": {
			reason:   "Each object has labels and annotations that name its resource.",
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {app: web}, annotations: {note: mine}}, data: {a: b}}`,
			want:     want,
		},
		"Claimed": {
			reason: "The template cannot name another resource.",
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, labels: {app: web, workload.crossplane.io/hub-namespace: team-b, workload.crossplane.io/managed-by: hub-2}, annotations: {
  note: mine, workload.crossplane.io/applied: "1", kubernetesapplicationresource.workload.crossplane.io/namespace: team-b,
  kubernetesapplicationresource.workload.crossplane.io/name: other, kubernetesapplicationresource.workload.crossplane.io/uid: u2}}, data: {a: b}}`,
			want: want,
		},
		"Exported": {
			reason: "Fields that a cluster sets are not sent.",
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: x, resourceVersion: "1", generation: 2, creationTimestamp: null, finalizers: [a/b],
  ownerReferences: [], managedFields: [], labels: {app: web}, annotations: {note: mine}}, data: {a: b}, status: {x: y}}`,
			want: want,
		},
	}
	digests := map[string]bool{}
	before := unstructured.Unstructured{Object: fieldsOf(t, want)}
	unstructured.RemoveNestedField(before.Object, "metadata", "labels", v1alpha1.HubNamespaceLabel)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Desired(templated(t, tc.template), hubID)
			if err != nil {
				t.Fatal(err)
			}
			digests[DigestOf(got)] = true
			annotations := got.GetAnnotations()
			delete(annotations, v1alpha1.AppliedAnnotation)
			got.SetAnnotations(annotations)
			if diff := cmp.Diff(fieldsOf(t, tc.want), got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if len(digests) != 1 || digests[""] {
		t.Errorf("the digests of one object are %v", digests)
	}
	// An earlier version has this digest, and no label with the namespace.
	if err := SetDigest(&before); err != nil || !digests[DigestOf(&before)] {
		t.Errorf("the digest differs from an earlier version's: %v, %v", DigestOf(&before), err)
	}
	other, err := Desired(templated(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}`), hubID)
	if err != nil || digests[DigestOf(other)] {
		t.Errorf("another object has the same digest %q (%v)", DigestOf(other), err)
	}
	if _, err := Desired(templated(t, `{metadata: {}}`), hubID); err == nil {
		t.Error("a template without a kind was read")
	}
}

func annotate(o *unstructured.Unstructured, key, value string) {
	annotations := o.GetAnnotations()
	annotations[key] = value
	o.SetAnnotations(annotations)
}
