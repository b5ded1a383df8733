package propagation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

const testHub = "hub-1"

// resourceWith returns a resource with a template in YAML.
func resourceWith(t testing.TB, template string) *v1alpha1.KubernetesApplicationResource {
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
