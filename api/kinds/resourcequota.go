package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ResourceQuota is enforced on the hub, too, with the numbers of the hub. No scope selects
// nothing of all resources, and scopes are immutable.
type ResourceQuota struct{ enforced }

var _ Kind = ResourceQuota{}

// GroupVersionKind implements Kind.
func (ResourceQuota) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("ResourceQuota")
}

// Resource implements Kind.
func (ResourceQuota) Resource() string { return "resourcequotas" }

// Properties implements Kind.
func (ResourceQuota) Properties() Properties {
	return enforcedProperties("the hub counts the objects of this namespace on the hub, and the target counts its own")
}
