package kinds

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NetworkPolicy is enforced on the hub, too. A label in its podSelector would hold it, but
// a podSelector of the user, such as {}, would change, and a policy of the hub that gets the
// label would not protect its Pods any more.
type NetworkPolicy struct{ enforced }

var _ Kind = NetworkPolicy{}

// GroupVersionKind implements Kind.
func (NetworkPolicy) GroupVersionKind() schema.GroupVersionKind {
	return networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
}

// Resource implements Kind.
func (NetworkPolicy) Resource() string { return "networkpolicies" }

// Properties implements Kind.
func (NetworkPolicy) Properties() Properties {
	return enforcedProperties("it selects the Pods of this namespace that run on the hub, too")
}
