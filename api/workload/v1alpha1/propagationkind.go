package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PropagationKindSpec names a kind of the hub, and says how its objects are sent.
//
// +kubebuilder:validation:XValidation:rule="self.group == oldSelf.group",fieldPath=".group",message="cannot change; create another PropagationKind"
// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",fieldPath=".kind",message="cannot change; create another PropagationKind"
type PropagationKindSpec struct {
	// group of the kind, such as cert-manager.io. Kinds of Kubernetes itself, and those of
	// Portico, cannot be named.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// kind in singular, such as Certificate. It is namespaced.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// statusPaths are the fields of the status that the hub shows, such as
	// .status.conditions. Default: the whole status.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	StatusPaths []string `json:"statusPaths,omitempty"`

	// readiness is a CEL expression that is true when an object on a target is ready. Its
	// variable "object" is that object. Default: the usual conditions and
	// observedGeneration.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Readiness string `json:"readiness,omitempty"`
}

// PropagationKindStatus is the state of a kind on the hub.
type PropagationKindStatus struct {
	// conditions has Ready: whether objects of the kind are sent.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// version is the version of the kind in which its objects are sent. It is the one that
	// the hub prefers.
	// +optional
	Version string `json:"version,omitempty"`

	// resource is the plural name of the kind in the API.
	// +optional
	Resource string `json:"resource,omitempty"`

	// subresources of the kind that Portico writes: status, if the kind has it.
	// +listType=set
	// +optional
	Subresources []string `json:"subresources,omitempty"`
}

// PropagationKind is a kind of the hub, usually of a CustomResourceDefinition, whose objects
// run on targets by the schedule label. Its name is the kind in lower case and the group,
// such as certificate.cert-manager.io.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=crossplane,shortName=pk
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.kind.lowerAscii() + '.' + self.spec.group",message="metadata.name must be the kind in lower case and the group, such as certificate.cert-manager.io"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.version"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type PropagationKind struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the kind.
	// +required
	Spec PropagationKindSpec `json:"spec"`
	// status is the state of the kind on the hub.
	// +optional
	Status PropagationKindStatus `json:"status,omitempty"`
}

// GroupKind returns the kind that a PropagationKind names.
func (k *PropagationKind) GroupKind() metav1.GroupKind {
	return metav1.GroupKind{Group: k.Spec.Group, Kind: k.Spec.Kind}
}

// PropagationKindList is a list of PropagationKinds.
//
// +kubebuilder:object:root=true
type PropagationKindList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PropagationKind `json:"items"`
}
