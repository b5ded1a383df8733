package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// LimitRange is enforced on the hub, too: it has no selector.
type LimitRange struct{ enforced }

var _ Kind = LimitRange{}

// GroupVersionKind implements Kind.
func (LimitRange) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("LimitRange")
}

// Resource implements Kind.
func (LimitRange) Resource() string { return "limitranges" }

// Properties implements Kind.
func (LimitRange) Properties() Properties {
	return enforcedProperties("it limits the new Pods and claims of this namespace on the hub, too")
}
