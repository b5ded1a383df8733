package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConfigMap is sent as Secret is, by the same rules.
type ConfigMap struct{ content }

var _ Kind = ConfigMap{}

// GroupVersionKind implements Kind.
func (ConfigMap) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind(ConfigMapKind)
}

// Resource implements Kind.
func (ConfigMap) Resource() string { return "configmaps" }
