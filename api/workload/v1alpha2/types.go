package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// ResourceTemplate is the template of one KubernetesApplicationResource.
type ResourceTemplate struct {
	// metadata of the KubernetesApplicationResource: its name, labels and
	// annotations.
	// +required
	Metadata TemplateMeta `json:"metadata"`

	// spec of the KubernetesApplicationResource.
	// +required
	Spec ResourceTemplateSpec `json:"spec"`
}

// TemplateMeta is the metadata that a template sets.
type TemplateMeta struct {
	// name of the KubernetesApplicationResource, unique in the application.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// namespace is ignored. A KubernetesApplicationResource is in the namespace of its
	// application.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// labels of the KubernetesApplicationResource.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the KubernetesApplicationResource.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ResourceTemplateSpec is the part of a KubernetesApplicationResource's spec that a
// template sets. The target is the target of the application.
type ResourceTemplateSpec struct {
	// template is the object that Portico applies on the target. It may be of any kind.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Template runtime.RawExtension `json:"template"`

	// secrets lists the Secrets of this namespace that are copied to the object's
	// namespace on the target.
	// +listType=atomic
	// +optional
	Secrets []corev1.LocalObjectReference `json:"secrets,omitempty"`

	// readiness is a CEL expression that is true when the object on the target is
	// ready. Its variable "object" is that object, for example
	// "object.status.phase == 'Running'". Default: the rule for the object's kind.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Readiness string `json:"readiness,omitempty"`

	// observe selects the part of the object on the target that the resource's status
	// shows: Status, which is the default, or Full.
	// +kubebuilder:validation:Enum=Status;Full
	// +optional
	Observe v1alpha1.ObservePolicy `json:"observe,omitempty"`
}

// KubernetesApplicationSpec is the resources of the application, and the targets on which
// they may run.
//
// +kubebuilder:validation:XValidation:rule="has(self.targetSelector) && has(self.targetSelector.matchLabels) && has(oldSelf.targetSelector) && has(oldSelf.targetSelector.matchLabels) ? self.targetSelector.matchLabels == oldSelf.targetSelector.matchLabels : (!has(self.targetSelector) || !has(self.targetSelector.matchLabels) || size(self.targetSelector.matchLabels) == 0) && (!has(oldSelf.targetSelector) || !has(oldSelf.targetSelector.matchLabels) || size(oldSelf.targetSelector.matchLabels) == 0)",fieldPath=".targetSelector",message="cannot change, because every resource would have to move; delete and re-create the KubernetesApplication"
// +kubebuilder:validation:XValidation:rule="has(self.targetSelector) && has(self.targetSelector.matchExpressions) && has(oldSelf.targetSelector) && has(oldSelf.targetSelector.matchExpressions) ? self.targetSelector.matchExpressions == oldSelf.targetSelector.matchExpressions : (!has(self.targetSelector) || !has(self.targetSelector.matchExpressions) || size(self.targetSelector.matchExpressions) == 0) && (!has(oldSelf.targetSelector) || !has(oldSelf.targetSelector.matchExpressions) || size(oldSelf.targetSelector.matchExpressions) == 0)",fieldPath=".targetSelector",message="cannot change, because every resource would have to move; delete and re-create the KubernetesApplication"
type KubernetesApplicationSpec struct {
	// resourceSelector selects the application's resources by label. Portico does not use
	// it: the templates define the resources.
	// +optional
	ResourceSelector *metav1.LabelSelector `json:"resourceSelector,omitempty"`

	// targetSelector selects the KubernetesTargets of this namespace on which the
	// application may run. An empty selector selects all. It is immutable.
	// +optional
	TargetSelector *metav1.LabelSelector `json:"targetSelector,omitempty"`

	// targetRef names the KubernetesTarget of the application. The scheduler sets it, and
	// changes it when the application moves.
	// +optional
	TargetRef *v1alpha1.TargetReference `json:"targetRef,omitempty"`

	// tolerations allow the application on targets with matching taints.
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// resourceTemplates are the templates of the application's resources. An application
	// of native objects has none.
	// +listType=atomic
	// +optional
	ResourceTemplates []ResourceTemplate `json:"resourceTemplates,omitempty"`
}

// KubernetesApplicationStatus is a summary of the states of the application's resources.
type KubernetesApplicationStatus struct {
	// conditions are Scheduled, Synced and Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// state is Pending, Scheduled, PartiallySubmitted, Submitted, Failed or Deleting.
	// +optional
	State v1alpha1.ResourceState `json:"state,omitempty"`

	// desiredResources is the number of resources of the application.
	// +optional
	// +kubebuilder:default=0
	DesiredResources int32 `json:"desiredResources"`

	// submittedResources is the number of resources that are applied on the target.
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
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec KubernetesApplicationSpec `json:"spec"`
	// status is the observed state.
	// +optional
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
