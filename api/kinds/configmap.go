package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/references"
)

// ConfigMap is sent as Secret is, by the same rules.
type ConfigMap struct{ content }

var _ Kind = ConfigMap{}

// GroupVersionKind implements Kind.
func (ConfigMap) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind(references.ConfigMapKind)
}

// Resource implements Kind.
func (ConfigMap) Resource() string { return "configmaps" }
