package references

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPodOf(t *testing.T) {
	object := podsOf(t, `{serviceAccountName: a, containers: [{name: c, image: i}]}`)
	object.SetNamespace("there")
	object.SetName("web")
	if err := unstructured.SetNestedStringMap(object.Object, map[string]string{"app": "web"}, "spec", "template", "metadata", "labels"); err != nil {
		t.Fatal(err)
	}
	before := object.DeepCopy()
	pod := PodOf(object)
	want := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": "there", "name": "web", "labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"serviceAccountName": "a", "containers": []any{map[string]any{"name": "c", "image": "i"}}},
	}
	if diff := cmp.Diff(want, pod.Object); diff != "" {
		t.Error(diff)
	}
	pod.SetLabels(map[string]string{"app": "other"})
	unstructured.RemoveNestedField(pod.Object, "spec", "containers")
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("the Pod is not a copy: %s", diff)
	}
	for _, none := range []string{`{}`, `{selector: {}}`} {
		if got := PodOf(podsOf(t, none)); got != nil {
			t.Errorf("a Pod of %s: %v", none, got)
		}
	}
}
