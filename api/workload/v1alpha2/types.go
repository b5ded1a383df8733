package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// ResourceTemplate templates one KubernetesApplicationResource.
type ResourceTemplate struct {
	// Metadata of the KubernetesApplicationResource: its name, labels and
	// annotations.
	Metadata TemplateMeta `json:"metadata"`

	// Spec of the KubernetesApplicationResource.
	Spec ResourceTemplateSpec `json:"spec"`
}

// TemplateMeta is the part of an object's metadata a template may set.
type TemplateMeta struct {
	// Name of the KubernetesApplicationResource, unique in the application.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace is ignored: a KubernetesApplicationResource is always in the
	// namespace of its application.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Labels of the KubernetesApplicationResource.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the KubernetesApplicationResource.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ResourceTemplateSpec is what a template sets of a
// KubernetesApplicationResource's spec; the target is the application's.
type ResourceTemplateSpec struct {
	// Template is the object to run on the target, of any kind.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Template runtime.RawExtension `json:"template"`

	// Secrets in this namespace to propagate next to the object.
	// +optional
	Secrets []corev1.LocalObjectReference `json:"secrets,omitempty"`

	// Readiness is an expression in CEL that tells whether the object on the
	// target works, which is "object" there, such as
	// "object.status.phase == 'Running'". Without it the object's kind decides.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Readiness string `json:"readiness,omitempty"`

	// Observe says what of the object on the target is shown in the resource's
	// status: its Status, which is the default, or the Full object.
	// +kubebuilder:validation:Enum=Status;Full
	// +optional
	Observe v1alpha1.ObservePolicy `json:"observe,omitempty"`
}

// KubernetesApplicationSpec says which resources make the application and
// which targets it may run on.
//
// +kubebuilder:validation:XValidation:rule="has(self.targetSelector) == has(oldSelf.targetSelector) && (!has(self.targetSelector) || self.targetSelector == oldSelf.targetSelector)",fieldPath=".targetSelector",message="cannot change, because every resource would have to move; delete and re-create the KubernetesApplication"
type KubernetesApplicationSpec struct {
	// ResourceSelector selects the application's resources by label. It is
	// documentation: membership follows from the templates.
	// +optional
	ResourceSelector *metav1.LabelSelector `json:"resourceSelector,omitempty"`

	// TargetSelector selects the KubernetesTargets in this namespace the
	// application may run on. Empty selects all. Immutable.
	// +optional
	TargetSelector *metav1.LabelSelector `json:"targetSelector,omitempty"`

	// TargetRef names the KubernetesTarget the application runs on. The
	// scheduler sets it, and changes it when it is asked to move the application.
	// +optional
	TargetRef *v1alpha1.TargetReference `json:"targetRef,omitempty"`

	// Tolerations let the application be scheduled to targets with matching
	// taints.
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// ResourceTemplates of the application. Empty for the applications
	// Portico makes from native objects.
	// +optional
	ResourceTemplates []ResourceTemplate `json:"resourceTemplates,omitempty"`
}

// KubernetesApplicationStatus sums up the application's resources.
type KubernetesApplicationStatus struct {
	// Conditions: Scheduled, Synced, Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// State in one word: Pending, Scheduled, PartiallySubmitted, Submitted,
	// Failed or Deleting.
	// +optional
	State v1alpha1.ResourceState `json:"state,omitempty"`

	// DesiredResources is the number of resources the application has.
	// +optional
	// +kubebuilder:default=0
	DesiredResources int32 `json:"desiredResources"`

	// SubmittedResources is the number of them that were applied on the target.
	// +optional
	// +kubebuilder:default=0
	SubmittedResources int32 `json:"submittedResources"`
}

// KubernetesApplication is a unit of scheduling: all its resources run on one
// target.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane,shortName=ka
// +kubebuilder:printcolumn:name="CLUSTER",type="string",JSONPath=".spec.targetRef.name"
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.state"
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desiredResources"
// +kubebuilder:printcolumn:name="SUBMITTED",type="integer",JSONPath=".status.submittedResources"
// +kubebuilder:printcolumn:name="READY",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="AGE",type="date",priority=1,JSONPath=".metadata.creationTimestamp"
type KubernetesApplication struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   KubernetesApplicationSpec   `json:"spec"`
	Status KubernetesApplicationStatus `json:"status,omitempty"`
}

// KubernetesApplicationList is a list of applications.
//
// +kubebuilder:object:root=true
type KubernetesApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubernetesApplication `json:"items"`
}
