package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubernetesClusterSpec is the claim for a cluster.
type KubernetesClusterSpec struct {
	// classRef names the class to provision a cluster of, such as a
	// GKEClusterClass.
	// +optional
	ClassReference *corev1.ObjectReference `json:"classRef,omitempty"`

	// classSelector selects the class by its labels.
	// +optional
	ClassSelector *metav1.LabelSelector `json:"classSelector,omitempty"`

	// resourceRef names the managed resource of the claim.
	// +optional
	ResourceReference *corev1.ObjectReference `json:"resourceRef,omitempty"`

	// writeConnectionSecretToRef names the Secret in the claim's namespace for the
	// connection to the cluster.
	// +optional
	WriteConnectionSecretToReference *corev1.LocalObjectReference `json:"writeConnectionSecretToRef,omitempty"`

	// clusterVersion is the version of Kubernetes to provision.
	// +optional
	ClusterVersion string `json:"clusterVersion,omitempty"`
}

// BindingPhase says whether a claim has its resource.
type BindingPhase string

// Condition is the condition of a Crossplane object. Its message is optional, and it
// has no observedGeneration.
type Condition struct {
	// type of the condition, such as Ready.
	// +required
	Type string `json:"type"`
	// status is True, False or Unknown.
	// +required
	Status corev1.ConditionStatus `json:"status"`
	// lastTransitionTime is the time of the last change of the status.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason for the status, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a text for users.
	// +optional
	Message string `json:"message,omitempty"`
}

// KubernetesClusterStatus is the state of a claim.
type KubernetesClusterStatus struct {
	// conditions are Ready and Synced.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`

	// bindingPhase is Bound once the claim has its resource.
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
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec KubernetesClusterSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
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
