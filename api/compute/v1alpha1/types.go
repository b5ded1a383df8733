package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubernetesClusterSpec says what cluster is claimed.
type KubernetesClusterSpec struct {
	// ClassReference names the class to provision a cluster of, such as a
	// GKEClusterClass.
	// +optional
	ClassReference *corev1.ObjectReference `json:"classRef,omitempty"`

	// ClassSelector selects the class by its labels.
	// +optional
	ClassSelector *metav1.LabelSelector `json:"classSelector,omitempty"`

	// ResourceReference names the managed resource that the claim is bound to, or
	// is to be bound to.
	// +optional
	ResourceReference *corev1.ObjectReference `json:"resourceRef,omitempty"`

	// WriteConnectionSecretToReference names the Secret in the claim's namespace
	// that the cluster's connection is written to.
	// +optional
	WriteConnectionSecretToReference *corev1.LocalObjectReference `json:"writeConnectionSecretToRef,omitempty"`

	// ClusterVersion is the version of Kubernetes to provision.
	// +optional
	ClusterVersion string `json:"clusterVersion,omitempty"`
}

// BindingPhase says whether a claim has its resource.
type BindingPhase string

// Condition is Crossplane's, which needs no message and observes no generation.
type Condition struct {
	// Type of the condition, such as Ready.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastTransitionTime is when the status became what it is.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason for it, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// KubernetesClusterStatus is what became of a claim.
type KubernetesClusterStatus struct {
	// Conditions: Ready, Synced.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`

	// Phase is Bound once the claim has its resource.
	// +kubebuilder:validation:Enum=Unbindable;Unbound;Bound;Released
	// +optional
	Phase BindingPhase `json:"bindingPhase,omitempty"`
}

// KubernetesCluster claims a managed Kubernetes cluster for a namespace. Once it
// is bound, Portico publishes the cluster there, as a KubernetesTarget with the
// claim's name and labels (S1).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.bindingPhase"
// +kubebuilder:printcolumn:name="CLASS-KIND",type="string",JSONPath=".spec.classRef.kind"
// +kubebuilder:printcolumn:name="CLASS-NAME",type="string",JSONPath=".spec.classRef.name"
// +kubebuilder:printcolumn:name="RESOURCE-KIND",type="string",JSONPath=".spec.resourceRef.kind"
// +kubebuilder:printcolumn:name="RESOURCE-NAME",type="string",JSONPath=".spec.resourceRef.name"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type KubernetesCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:pruning:PreserveUnknownFields
	Spec   KubernetesClusterSpec   `json:"spec,omitempty"`
	Status KubernetesClusterStatus `json:"status,omitempty"`
}

// KubernetesClusterList is a list of claims.
//
// +kubebuilder:object:root=true
type KubernetesClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubernetesCluster `json:"items"`
}
