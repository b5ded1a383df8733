package kinds

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that are sent for the Pods that need them, next to Secrets and ConfigMaps: the
// ServiceAccount of a Pod, and the kinds that give a ServiceAccount its rights.
const (
	ServiceAccountKind = "ServiceAccount"
	RoleKind           = "Role"
	RoleBindingKind    = "RoleBinding"
)

// DependencyKind returns the group and version of a kind that other objects may need.
func DependencyKind(kind string) schema.GroupVersionKind {
	if kind == RoleKind || kind == RoleBindingKind {
		return rbacv1.SchemeGroupVersion.WithKind(kind)
	}
	return corev1.SchemeGroupVersion.WithKind(kind)
}
