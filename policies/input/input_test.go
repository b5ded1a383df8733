package input

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
)

const hidden = "aHVudGVyMg"

func secret() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"name": "password", "namespace": "shop",
			"managedFields": []any{map[string]any{"manager": "kubectl"}},
			"annotations":   map[string]any{"kubectl.kubernetes.io/last-applied-configuration": hidden, "kept": "yes"},
		},
		"data":       map[string]any{"password": hidden},
		"stringData": map[string]any{"password": hidden},
	}
}

func question() Question {
	target := &workloadv1alpha1.KubernetesTarget{
		ObjectMeta: metav1.ObjectMeta{Name: "eu", Namespace: "shop", Labels: map[string]string{"region": "eu"}},
		Spec: workloadv1alpha1.KubernetesTargetSpec{ConnectionSecretRef: &workloadv1alpha1.SecretReference{Name: "eu-connection"},
			ClusterRef: &workloadv1alpha1.ClusterReference{APIVersion: "compute.example.org/v1", Kind: "EKSCluster", Name: "eu"}},
		Status: workloadv1alpha1.KubernetesTargetStatus{ServerVersion: "v1.36.3", Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Available"}}},
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"replicas": int64(3), "share": 0.5, "list": []any{"a", true, nil}},
	}}
	return Question{
		Request: Request{Operation: "UPDATE", User: User{Username: "ada"}}, Object: object, OldObject: object,
		Targets: []*workloadv1alpha1.KubernetesTarget{target}, Placed: map[string]int{"eu": 2},
		Target: target, OldTarget: target, Existing: []*workloadv1alpha1.KubernetesTarget{target}, ClusterID: "1f0e",
	}
}

// TestSecretsAreNeverShown: policies never see the content of a Secret, at any depth.
func TestSecretsAreNeverShown(t *testing.T) {
	for name, object := range map[string]map[string]any{
		"Secret": secret(),
		"Template": {
			"apiVersion": "workload.crossplane.io/v1alpha1", "kind": "KubernetesApplicationResource",
			"metadata": map[string]any{"name": "password"}, "spec": map[string]any{"template": secret()},
		},
		"Templates": {
			"apiVersion": "workload.crossplane.io/v1alpha2", "kind": "KubernetesApplication",
			"metadata": map[string]any{"name": "shop"},
			"spec":     map[string]any{"resourceTemplates": []any{map[string]any{"spec": map[string]any{"template": secret()}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := question()
			q.Object = &unstructured.Unstructured{Object: object}
			q.OldObject = q.Object
			q.Namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{lastApplied: hidden}}}
			before := q.Object.DeepCopy()
			shown, err := json.Marshal(NewScheduling(q, nil))
			if err != nil {
				t.Fatal(err)
			}
			for _, never := range []string{hidden, "managedFields", "last-applied"} {
				if strings.Contains(string(shown), never) {
					t.Errorf("%s is shown: %s", never, shown)
				}
			}
			if diff := cmp.Diff(before.Object, q.Object.Object); diff != "" {
				t.Errorf("the object itself changed:\n%s", diff)
			}
		})
	}
}

// TestTermIsJSON: a converted term is equal to the term of the JSON document.
func TestTermIsJSON(t *testing.T) {
	for name, in := range map[string]any{
		"Scheduling": NewScheduling(question(), map[string]any{"max": 3}),
		"Publish":    NewPublish(question(), nil),
		"Nothing":    NewScheduling(Question{}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			want, err := ast.ValueFromReader(strings.NewReader(string(encoded)))
			if err != nil {
				t.Fatal(err)
			}
			if got := Term(in).Value; got.Compare(want) != 0 {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// TestFieldsAlwaysPresent: labels, annotations and lists are present, also when they are
// empty.
func TestFieldsAlwaysPresent(t *testing.T) {
	encoded, err := json.Marshal([]any{NewScheduling(Question{}, nil), NewPublish(Question{}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(encoded), "null") {
		t.Errorf("something is null: %s", encoded)
	}
}

// TestSchemasAreComplete: the schemas in policies/schemas describe every field. make
// verify compares them with the code.
func TestSchemasAreComplete(t *testing.T) {
	for _, kind := range []policyv1alpha1.PolicyType{policyv1alpha1.Scheduling, policyv1alpha1.Publish} {
		data, err := os.ReadFile("../schemas/" + strings.ToLower(string(kind)) + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var written map[string]any
		if err := json.Unmarshal(data, &written); err != nil {
			t.Fatal(err)
		}
		undescribed(t, string(kind), written, false)
		described := Schema(kind, func(string, string) string { return "x" })
		if got, want := len(written["properties"].(map[string]any)), len(described["properties"].(map[string]any)); got != want {
			t.Errorf("%s: the schema has %d properties, the type %d", kind, got, want)
		}
	}
}

func undescribed(t *testing.T, path string, schema map[string]any, needed bool) {
	if _, ok := schema["description"].(string); needed && !ok {
		t.Errorf("%s has no description", path)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		undescribed(t, path+"."+name, property.(map[string]any), true)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		undescribed(t, path+"[]", items, false)
	}
}

func TestOf(t *testing.T) {
	if Empty(policyv1alpha1.Library) != nil || Schema(policyv1alpha1.Library, nil) != nil {
		t.Error("a Library has an input")
	}
	if got := reflect.TypeOf(Empty(policyv1alpha1.Publish)); got != reflect.TypeFor[*Publish]() {
		t.Errorf("got %v", got)
	}
}
