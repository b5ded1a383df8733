package manifests

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// TestHardened: Portico may write Secrets only in its own namespace.
func TestHardened(t *testing.T) {
	verbs := map[string][]string{}
	private := false
	for _, object := range render(t, "hardened") {
		var rules []rbacv1.PolicyRule
		switch object.GetKind() {
		case "Role":
			var role rbacv1.Role
			convert(t, object, &role)
			rules = role.Rules
		case "ClusterRole":
			if object.GetName() != "portico" {
				continue // the roles of users and of the provider
			}
			var role rbacv1.ClusterRole
			convert(t, object, &role)
			rules = role.Rules
		case "Deployment":
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			args, _ := containers[0].(map[string]any)["args"].([]any)
			private = slices.Contains(args, any("--default-connection=Private"))
		}
		for _, rule := range rules {
			if slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 {
				key := object.GetKind() + " " + object.GetNamespace()
				verbs[key] = sets.List(sets.New(append(verbs[key], rule.Verbs...)...))
			}
		}
	}
	want := map[string][]string{"ClusterRole ": {"delete", "get", "list", "watch"}, "Role portico-system": {"create", "patch"}}
	if diff := cmp.Diff(want, verbs); diff != "" {
		t.Errorf("rights on Secrets (-want +got):\n%s", diff)
	}
	if !private {
		t.Error("connections are not private by default")
	}
}
