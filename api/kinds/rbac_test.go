package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProjectRole(t *testing.T) {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: "shop", UID: "u1", Labels: map[string]string{"app": "shop"}},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"settings"}}}}
	got, err := ProjectRole(role)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
		"metadata": map[string]any{"name": "reader", "namespace": "shop", "labels": map[string]any{"app": "shop"}},
		"rules":    []any{map[string]any{"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{"settings"}}},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProjectRoleBinding(t *testing.T) {
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "readers", Namespace: "shop"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: RoleKind, Name: "reader"},
		Subjects: []rbacv1.Subject{account("shop", "web"), account("shop", "web"), account("shop", "stays"), account("other", "web"),
			{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "web"}, {Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:shop"}}}
	want := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
		"metadata": map[string]any{"name": "readers", "namespace": "shop"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "web", "namespace": "shop"}},
	}
	if diff := cmp.Diff(want, ProjectRoleBinding(binding, []string{"web", "unbound"}).Object); diff != "" {
		t.Errorf("only the ServiceAccount that was sent is bound (-want +got):\n%s", diff)
	}
	if !BindsRole(binding) {
		t.Error("a Role is sent")
	}
	binding.RoleRef.Kind = "ClusterRole"
	if BindsRole(binding) {
		t.Error("a ClusterRole of the target may have other rules")
	}
}
