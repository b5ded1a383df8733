package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TargetReference names a KubernetesTarget in the same namespace.
type TargetReference struct {
	// Name of the KubernetesTarget.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// KubernetesApplicationResourceSpec says what runs where.
//
// +kubebuilder:validation:XValidation:rule="self.template.apiVersion == oldSelf.template.apiVersion",fieldPath=".template",message="apiVersion cannot change, because the object on the target would be orphaned; delete and re-create the KubernetesApplicationResource"
// +kubebuilder:validation:XValidation:rule="self.template.kind == oldSelf.template.kind",fieldPath=".template",message="kind cannot change, because the object on the target would be orphaned; delete and re-create the KubernetesApplicationResource"
// +kubebuilder:validation:XValidation:rule="self.template.metadata.name == oldSelf.template.metadata.name",fieldPath=".template",message="metadata.name cannot change, because the object on the target would be orphaned; delete and re-create the KubernetesApplicationResource"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.targetRef) || (has(self.targetRef) && self.targetRef.name == oldSelf.targetRef.name)",fieldPath=".targetRef",message="cannot change once set, because the object on the old target would be orphaned; delete and re-create the KubernetesApplicationResource"
type KubernetesApplicationResourceSpec struct {
	// Template is the object to run on the target, of any kind, preserved
	// whole. Its apiVersion, kind, name and namespace are immutable. An object
	// of a namespaced kind that names no namespace goes to "default".
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Template runtime.RawExtension `json:"template"`

	// TargetRef names the KubernetesTarget the object runs on. The scheduler
	// sets it; once set it does not change.
	// +optional
	TargetRef *TargetReference `json:"targetRef,omitempty"`

	// TargetSelector selects the KubernetesTarget of a resource that belongs to
	// no application (S4).
	// +optional
	TargetSelector *metav1.LabelSelector `json:"targetSelector,omitempty"`

	// Secrets in this namespace to propagate next to the object.
	// +optional
	Secrets []corev1.LocalObjectReference `json:"secrets,omitempty"`
}

// KubernetesApplicationResourceStatus is what became of the object.
type KubernetesApplicationResourceStatus struct {
	// Conditions: Scheduled, TargetReachable, Synced, Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// State in one word: Pending, Scheduled, Submitted, Failed or Deleting.
	// +optional
	State ResourceState `json:"state,omitempty"`

	// Remote is the status of the object on the target, verbatim.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Remote *apiextensionsv1.JSON `json:"remote,omitempty"`

	// ObservedHubGeneration is the generation of the native object on the hub
	// that the target has fully observed, so that Remote speaks of it or a
	// later one. 0 while it has observed none.
	// +optional
	ObservedHubGeneration int64 `json:"observedHubGeneration,omitempty"`
}

// KubernetesApplicationResource is one object that runs on a target.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane,shortName=kar
// +kubebuilder:printcolumn:name="TEMPLATE-KIND",type="string",JSONPath=".spec.template.kind"
// +kubebuilder:printcolumn:name="TEMPLATE-NAME",type="string",JSONPath=".spec.template.metadata.name"
// +kubebuilder:printcolumn:name="CLUSTER",type="string",JSONPath=".spec.targetRef.name"
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.state"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type KubernetesApplicationResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   KubernetesApplicationResourceSpec   `json:"spec"`
	Status KubernetesApplicationResourceStatus `json:"status,omitempty"`
}

// KubernetesApplicationResourceList is a list of resources.
//
// +kubebuilder:object:root=true
type KubernetesApplicationResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubernetesApplicationResource `json:"items"`
}

// KubernetesTargetSpec says how to reach a cluster.
type KubernetesTargetSpec struct {
	// ConnectionSecretRef names the Secret in this namespace that holds the
	// connection: a kubeconfig, or an endpoint with clusterCA and either
	// clientCert and clientKey, token, or username and password.
	// +optional
	ConnectionSecretRef *corev1.LocalObjectReference `json:"connectionSecretRef,omitempty"`
}

// KubernetesTargetStatus is what is known of the cluster.
type KubernetesTargetStatus struct {
	// Conditions: TargetReachable, Synced, Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ServerVersion is the target's Kubernetes version, such as v1.36.3.
	// +optional
	ServerVersion string `json:"serverVersion,omitempty"`
}

// KubernetesTarget publishes a cluster to a namespace: applications of that
// namespace may be scheduled to it (S1).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane,shortName=kt
// +kubebuilder:printcolumn:name="REACHABLE",type="string",JSONPath=".status.conditions[?(@.type=='TargetReachable')].status"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.serverVersion"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type KubernetesTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   KubernetesTargetSpec   `json:"spec"`
	Status KubernetesTargetStatus `json:"status,omitempty"`
}

// KubernetesTargetList is a list of targets.
//
// +kubebuilder:object:root=true
type KubernetesTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubernetesTarget `json:"items"`
}
