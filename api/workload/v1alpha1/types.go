package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.targetRef) || !has(self.targetRef) || self.targetRef.name == oldSelf.targetRef.name || (has(self.leavingTargetRef) && self.leavingTargetRef.name == oldSelf.targetRef.name)",fieldPath=".targetRef",message="cannot change once set, because the object on the old target would be orphaned; drain the target, or delete and re-create the KubernetesApplicationResource"
type KubernetesApplicationResourceSpec struct {
	// Template is the object to run on the target, of any kind, preserved
	// whole. Its apiVersion, kind, name and namespace are immutable. An object
	// of a namespaced kind that names no namespace goes to "default".
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Template runtime.RawExtension `json:"template"`

	// TargetRef names the KubernetesTarget the object runs on. The scheduler
	// sets it. It changes when the object moves, and is unset when the target is
	// released.
	// +optional
	TargetRef *TargetReference `json:"targetRef,omitempty"`

	// LeavingTargetRef names the KubernetesTarget the object ran on before, while
	// it is moving to TargetRef: it is deleted there once it is ready here.
	// +optional
	LeavingTargetRef *TargetReference `json:"leavingTargetRef,omitempty"`

	// TargetSelector selects the KubernetesTarget of a resource that belongs to
	// no application (S4).
	// +optional
	TargetSelector *metav1.LabelSelector `json:"targetSelector,omitempty"`

	// Secrets in this namespace to propagate to the object's namespace on the
	// target, before the object, each as "<resource>-<secret>".
	// +optional
	Secrets []corev1.LocalObjectReference `json:"secrets,omitempty"`

	// Dependencies are Secrets and ConfigMaps in this namespace that travel in
	// the same way. Portico lists here what the Pods of a native object refer to.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +optional
	Dependencies []Dependency `json:"dependencies,omitempty"`

	// Readiness is an expression in CEL that tells whether the object on the
	// target works, which is "object" there, such as
	// "object.status.phase == 'Running'". Without it the object's kind decides.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Readiness string `json:"readiness,omitempty"`

	// Observe says what of the object on the target is shown in the status: its
	// Status, which is the default, or the Full object.
	// +kubebuilder:validation:Enum=Status;Full
	// +optional
	Observe ObservePolicy `json:"observe,omitempty"`
}

// ObservePolicy is what of an object on a target is shown on the hub.
type ObservePolicy string

// The policies of observing.
const (
	ObserveStatus ObservePolicy = "Status"
	ObserveFull   ObservePolicy = "Full"
)

// DriftPolicy is what becomes of what somebody changes on a target, by hand, of
// what Portico applied there. It is the value of DriftAnnotation.
type DriftPolicy string

// The policies of drift.
const (
	// DriftCorrect changes it back. It is the default.
	DriftCorrect DriftPolicy = "Correct"
	// DriftReport leaves it, and tells.
	DriftReport DriftPolicy = "Report"
)

// Dependency is something that an object needs next to it on its target.
type Dependency struct {
	// Kind of what is needed.
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind"`
	// Name of what is needed, in the resource's namespace on the hub.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Optional is true when the object does not wait for it.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// Native is true when it is labelled to travel by itself, under its own name.
	// The object then waits for it, and takes no copy of it along.
	// +optional
	Native bool `json:"native,omitempty"`
}

// KubernetesApplicationResourceStatus is what became of the object.
type KubernetesApplicationResourceStatus struct {
	// Conditions: Scheduled, TargetReachable, SecretsReady, Synced, Ready; and
	// Drifted and Observed, where they were asked for.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ContentRevision counts, for a Secret or ConfigMap that travels by itself,
	// how often what is in it changed on the target. It says nothing of what that is.
	// +optional
	ContentRevision int64 `json:"contentRevision,omitempty"`

	// State in one word: Pending, Scheduled, Submitted, Failed or Deleting.
	// +optional
	State ResourceState `json:"state,omitempty"`

	// Target that Remote and the condition Ready speak of. While an object moves
	// that is the one it leaves, until it is ready on the other.
	// +optional
	Target string `json:"target,omitempty"`

	// Remote is the status of the object on the target, verbatim.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Remote *apiextensionsv1.JSON `json:"remote,omitempty"`

	// RemoteUID is the UID of the object on the target that was last known to be
	// this resource's.
	// +optional
	RemoteUID types.UID `json:"remoteUID,omitempty"`

	// ObservedHubGeneration is the generation of the native object on the hub
	// that the target has fully observed, so that Remote speaks of it or a
	// later one. 0 while it has observed none.
	// +optional
	ObservedHubGeneration int64 `json:"observedHubGeneration,omitempty"`

	// Drift lists what was changed on the target of what was applied there, and is
	// left so, because drift is only reported. No more than 20 fields are listed.
	// +listType=atomic
	// +optional
	Drift []Drift `json:"drift,omitempty"`

	// Observed is the whole object on the target, but for its managed fields, when
	// spec.observe is Full. What is secret in it is redacted.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Observed *apiextensionsv1.JSON `json:"observed,omitempty"`

	// Ownership says who set which fields of Observed.
	// +listType=atomic
	// +optional
	Ownership []FieldOwner `json:"ownership,omitempty"`
}

// Drift is a field that was changed on a target.
type Drift struct {
	// Path of the field, such as .spec.replicas; "." is the whole object.
	Path string `json:"path"`
	// Desired value, if there is one. What is secret is redacted, and what is long
	// is cut.
	// +optional
	Desired string `json:"desired,omitempty"`
	// Observed value, if there is one; the same holds for it.
	// +optional
	Observed string `json:"observed,omitempty"`
	// Manager that set it, as the target calls it, if that is known.
	// +optional
	Manager string `json:"manager,omitempty"`
	// FirstSeenTime is when the field was first seen to differ.
	FirstSeenTime metav1.Time `json:"firstSeenTime"`
}

// FieldOwner is who set some fields of an object.
type FieldOwner struct {
	// Manager of the fields, as the target calls it.
	Manager string `json:"manager"`
	// Fields that it set, in the form that managed fields have.
	// +kubebuilder:pruning:PreserveUnknownFields
	Fields apiextensionsv1.JSON `json:"fields"`
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
// +kubebuilder:printcolumn:name="READY",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="AGE",type="date",priority=1,JSONPath=".metadata.creationTimestamp"
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

// ClusterReference names the resource that stands for a managed cluster.
type ClusterReference struct {
	// APIVersion of the resource.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`
	// Kind of the resource: any cluster-scoped managed resource (S1), or Cluster
	// of cluster.x-k8s.io in the target's own namespace.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Name of the resource.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// Allowance narrows what may be sent to a target.
type Allowance struct {
	// Kinds that may be sent. A group or kind may end in a star, which stands for
	// any rest. Empty allows every kind that has namespaces; a kind that has none
	// has to be named in full to be allowed.
	// +listType=atomic
	// +optional
	Kinds []metav1.GroupKind `json:"kinds,omitempty"`
	// Namespaces on the target that may be sent to; "team-*" stands for all that
	// begin with "team-". Empty allows all but kube-* and Portico's own, which
	// have to be named to be allowed.
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
}

// Impersonation is who Portico acts as on a target. "{namespace}" in a value
// stands for the namespace of the target on the hub.
type Impersonation struct {
	// User to act as.
	// +kubebuilder:validation:MinLength=1
	User string `json:"user"`
	// Groups the user is in.
	// +listType=set
	// +optional
	Groups []string `json:"groups,omitempty"`
}

// KubernetesTargetSpec says how to reach a cluster, and who may go there.
type KubernetesTargetSpec struct {
	// ClusterRef names the managed cluster to publish. Portico copies its
	// connection Secret here and sets ConnectionSecretRef, which wins where both
	// are given.
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`

	// ConnectionSecretRef names the Secret in this namespace that holds the
	// connection: a kubeconfig, or an endpoint with clusterCA and either
	// clientCert and clientKey, token, or username and password.
	// +optional
	ConnectionSecretRef *corev1.LocalObjectReference `json:"connectionSecretRef,omitempty"`

	// Unschedulable keeps new applications away; those that are here stay.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`

	// Taints keep away applications that do not tolerate them, as a node's do
	// Pods. NoSchedule keeps new ones away, PreferNoSchedule if there is another
	// target; NoExecute counts as NoSchedule.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// Allow narrows what may be sent to the cluster.
	// +optional
	Allow *Allowance `json:"allow,omitempty"`

	// Impersonate makes Portico act on the cluster as somebody with fewer rights
	// than the connection Secret gives.
	// +optional
	Impersonate *Impersonation `json:"impersonate,omitempty"`

	// DryRun says when the cluster is asked, as a dry run, whether it would take
	// what somebody applies on the hub, so that they read its refusal at once:
	// Always, which is the default, or Never.
	// +kubebuilder:validation:Enum=Always;Never
	// +optional
	DryRun DryRunPolicy `json:"dryRun,omitempty"`
}

// DryRunPolicy is when a target is asked before something is accepted for it.
type DryRunPolicy string

// The policies of dry runs.
const (
	DryRunAlways DryRunPolicy = "Always"
	DryRunNever  DryRunPolicy = "Never"
)

// KubernetesTargetStatus is what is known of the cluster.
type KubernetesTargetStatus struct {
	// Conditions: TargetReachable, Synced, Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Cluster that is published: the managed cluster's kind and name, or the host
	// of the connection Secret's endpoint.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// ServerVersion is the target's Kubernetes version, such as v1.36.3.
	// +optional
	ServerVersion string `json:"serverVersion,omitempty"`

	// LastContactTime is when the target last answered before it stopped, or when
	// it began to answer.
	// +optional
	LastContactTime *metav1.Time `json:"lastContactTime,omitempty"`

	// CredentialExpiryTime is when the connection Secret's client certificate or
	// token ends, where that can be known.
	// +optional
	CredentialExpiryTime *metav1.Time `json:"credentialExpiryTime,omitempty"`

	// LeftBehind lists objects of resources that were given up while the target was
	// away, the latest last, and at most 50. One goes from the list when it is a
	// resource's again.
	// +listType=atomic
	// +optional
	LeftBehind []LeftObject `json:"leftBehind,omitempty"`
}

// LeftObject is an object that stayed on a target.
type LeftObject struct {
	// Object in words, such as "Deployment shop/web".
	Object string `json:"object"`
	// Resource it was of, in the namespace of the target.
	Resource string `json:"resource"`
	// Time it was given up.
	Time metav1.Time `json:"time"`
}

// KubernetesTarget publishes a cluster to a namespace: applications of that
// namespace may be scheduled to it (S1).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane,shortName=kt
// +kubebuilder:printcolumn:name="CLUSTER",type="string",JSONPath=".status.cluster"
// +kubebuilder:printcolumn:name="REACHABLE",type="string",JSONPath=".status.conditions[?(@.type=='TargetReachable')].status"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.serverVersion"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="UNSCHEDULABLE",type="boolean",JSONPath=".spec.unschedulable",priority=1
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
