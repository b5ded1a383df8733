package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

func TestRedactedObject(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": "keys", "uid": "u1", "resourceVersion": "7"}, "data": map[string]any{"a": "aHVudGVyMg=="}}}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		managed("z", metav1.ManagedFieldsOperationUpdate, "", `{"f:data":{"f:a":{}}}`),
		managed("a", metav1.ManagedFieldsOperationUpdate, "status", `{"f:spec":{"f:tokens":{"v:\"hunter2\"":{}}}}`),
		managed("a", metav1.ManagedFieldsOperationApply, "", `{"f:type":{}}`),
	})
	shown, owners, err := RedactedObject(live)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"v1","data":{"a":"\u003credacted\u003e"},"kind":"Secret","metadata":{"name":"keys","resourceVersion":"7","uid":"u1"}}`
	if diff := cmp.Diff(want, string(shown.Raw)); diff != "" {
		t.Errorf("observation (-want +got):\n%s", diff)
	}
	var text []string
	for _, owner := range owners {
		text = append(text, owner.Manager+" "+string(owner.Fields.Raw))
	}
	if diff := cmp.Diff([]string{`a {"f:spec":{"f:tokens":{}},"f:type":{}}`, `z {"f:data":{"f:a":{}}}`}, text); diff != "" {
		t.Errorf("managers of fields (-want +got):\n%s", diff)
	}
	if len(live.GetManagedFields()) != 3 {
		t.Error("the object itself was changed")
	}
	if !ShowsVersion(shown, live) {
		t.Error("a recent observation would be read again")
	}
	live.SetResourceVersion("8")
	if ShowsVersion(shown, live) || ShowsVersion(nil, live) {
		t.Error("a newer version would not be asked for")
	}
}

func TestSameOwners(t *testing.T) {
	owner := func(fields ...string) []v1alpha1.FieldOwner {
		var out []v1alpha1.FieldOwner
		for _, f := range fields {
			name, raw, _ := strings.Cut(f, " ")
			out = append(out, v1alpha1.FieldOwner{Manager: name, Fields: apiextensionsv1.JSON{Raw: []byte(raw)}})
		}
		return out
	}
	if !EqualFieldOwners(owner(`a {"x":{},"y":{}}`), owner(`a { "y": {}, "x": {} }`)) {
		t.Error("the order of fields means nothing")
	}
	for _, other := range [][]v1alpha1.FieldOwner{owner(), owner(`b {"x":{}}`), owner(`a {"y":{}}`), owner(`a {"x":{}}`, `b {}`)} {
		if EqualFieldOwners(owner(`a {"x":{}}`), other) {
			t.Errorf("%v is another", other)
		}
	}
}
