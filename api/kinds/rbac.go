package kinds

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ProjectRole returns the Role to apply on a target: rules, labels and annotations.
func ProjectRole(native *rbacv1.Role) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.Role{Rules: native.Rules})
	if err != nil {
		return nil, err
	}
	template := &unstructured.Unstructured{Object: map[string]any{"rules": content["rules"]}}
	template.SetGroupVersionKind(DependencyKind(RoleKind))
	setAnnotations(template, projectMetadata(template, native))
	return template, nil
}

// ProjectRoleBinding returns the RoleBinding to apply on a target. It binds the Role to
// some ServiceAccounts of its namespace. Users and groups of the hub are other people on a
// target, and ServiceAccounts of other namespaces may be those of others.
func ProjectRoleBinding(native *rbacv1.RoleBinding, accounts []string) *unstructured.Unstructured {
	var subjects []any
	for _, name := range AccountsOf(native) {
		if slices.Contains(accounts, name) {
			subjects = append(subjects, map[string]any{"kind": rbacv1.ServiceAccountKind, "name": name, "namespace": native.Namespace})
		}
	}
	template := &unstructured.Unstructured{Object: map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": native.RoleRef.Kind, "name": native.RoleRef.Name},
		"subjects": subjects,
	}}
	template.SetGroupVersionKind(DependencyKind(RoleBindingKind))
	setAnnotations(template, projectMetadata(template, native))
	return template
}

// AccountsOf returns the ServiceAccounts of the same namespace that a RoleBinding names,
// each once, in order.
func AccountsOf(native *rbacv1.RoleBinding) []string {
	var out []string
	for _, subject := range native.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind && subject.APIGroup == "" && subject.Namespace == native.Namespace {
			out = append(out, subject.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// BindsRole tells whether a RoleBinding binds a Role of its namespace. ClusterRoles are
// not sent: one of the same name on a target may have other rules.
func BindsRole(native *rbacv1.RoleBinding) bool {
	return native.RoleRef.Kind == RoleKind && native.RoleRef.APIGroup == rbacv1.GroupName
}
