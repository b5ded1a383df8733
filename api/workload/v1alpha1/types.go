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
	// name of the KubernetesTarget.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// KubernetesApplicationResourceSpec is an object and its target.
//
// +kubebuilder:validation:XValidation:rule="self.template.apiVersion == oldSelf.template.apiVersion",fieldPath=".template",message="apiVersion cannot change, because the object on the target would be orphaned; delete and re-create the KubernetesApplicationResource"
// +kubebuilder:validation:XValidation:rule="self.template.kind == oldSelf.template.kind",fieldPath=".template",message="kind cannot change, because the object on the target would be orphaned; delete and re-create the KubernetesApplicationResource"
// +kubebuilder:validation:XValidation:rule="self.template.metadata.name == oldSelf.template.metadata.name",fieldPath=".template",message="metadata.name cannot change, because the object on the target would be orphaned; delete and re-create the KubernetesApplicationResource"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.targetRef) || !has(self.targetRef) || self.targetRef.name == oldSelf.targetRef.name || (has(self.leavingTargetRef) && self.leavingTargetRef.name == oldSelf.targetRef.name)",fieldPath=".targetRef",message="cannot change once set, because the object on the old target would be orphaned; drain the target, or delete and re-create the KubernetesApplicationResource"
type KubernetesApplicationResourceSpec struct {
	// template is the object that Portico applies on the target. It may be of any
	// kind, and all its fields are kept. Its apiVersion, kind, name and namespace are
	// immutable. The default namespace of a namespaced kind is "default".
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Template runtime.RawExtension `json:"template"`

	// targetRef names the KubernetesTarget of the object. The scheduler sets it. It
	// changes when the object moves, and it is removed when the target is released.
	// +optional
	TargetRef *TargetReference `json:"targetRef,omitempty"`

	// leavingTargetRef names the previous KubernetesTarget while the object moves to
	// targetRef. Portico deletes the object there when it is ready on the new target.
	// +optional
	LeavingTargetRef *TargetReference `json:"leavingTargetRef,omitempty"`

	// targetSelector selects the KubernetesTarget of a resource without an
	// application (S4).
	// +optional
	TargetSelector *metav1.LabelSelector `json:"targetSelector,omitempty"`

	// secrets lists the Secrets of this namespace that are copied to the object's
	// namespace on the target before the object. The name of a copy is
	// "<resource>-<secret>".
	// +listType=atomic
	// +optional
	Secrets []corev1.LocalObjectReference `json:"secrets,omitempty"`

	// dependencies lists the objects of this namespace that the object needs on the
	// target. Secrets and ConfigMaps are copied in the same way, unless they are shared.
	// Portico lists here the references of a native object's Pods.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +optional
	Dependencies []Dependency `json:"dependencies,omitempty"`

	// readiness is a CEL expression that is true when the object on the target is
	// ready. Its variable "object" is that object, for example
	// "object.status.phase == 'Running'". Default: the rule for the object's kind.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Readiness string `json:"readiness,omitempty"`

	// observe selects the part of the object on the target that the status shows:
	// Status, which is the default, or Full.
	// +kubebuilder:validation:Enum=Status;Full
	// +optional
	Observe ObservePolicy `json:"observe,omitempty"`
}

// ObservePolicy selects the part of an object on a target that the hub shows.
type ObservePolicy string

// The policies of observing.
const (
	ObserveStatus ObservePolicy = "Status"
	ObserveFull   ObservePolicy = "Full"
)

// DriftPolicy says what Portico does when someone changes, on the target, a field that
// Portico applied. It is the value of DriftAnnotation.
type DriftPolicy string

// The policies of drift.
const (
	// DriftCorrect restores the field. It is the default.
	DriftCorrect DriftPolicy = "Correct"
	// DriftReport keeps the change, and reports it.
	DriftReport DriftPolicy = "Report"
)

// Dependency is an object that another object needs on its target.
//
// +kubebuilder:validation:XValidation:rule="self.kind in ['Secret', 'ConfigMap'] || (has(self.shared) && self.shared)",fieldPath=".shared",message="only Secrets and ConfigMaps are copied under another name; set shared: true"
// +kubebuilder:validation:XValidation:rule="!has(self.rbac) || !self.rbac || self.kind == 'ServiceAccount'",fieldPath=".rbac",message="is for a ServiceAccount"
type Dependency struct {
	// kind is Secret, ConfigMap, ServiceAccount, Role or RoleBinding.
	// +required
	// +kubebuilder:validation:Enum=Secret;ConfigMap;ServiceAccount;Role;RoleBinding
	Kind string `json:"kind"`
	// name of the dependency in the resource's namespace on the hub.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// optional is true if the object is applied without the dependency.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// native is true if the dependency is labelled itself, and is applied on the target
	// under its own name. The object then waits for it, and there is no copy.
	// +optional
	Native bool `json:"native,omitempty"`
	// shared is true if the dependency is applied on the target under its own name, once
	// for all resources there that need it. Portico deletes it with the last of them.
	// +optional
	Shared bool `json:"shared,omitempty"`
	// rbac is true if the RoleBindings that name a ServiceAccount, and their Roles, are
	// applied on the target with it.
	// +optional
	RBAC bool `json:"rbac,omitempty"`
}

// KubernetesApplicationResourceStatus is the state of the object on its target.
type KubernetesApplicationResourceStatus struct {
	// conditions are Scheduled, TargetReachable, DependenciesReady, SecretsReady, Synced
	// and Ready. Drifted and Observed exist if the drift policy or spec.observe asks for
	// them.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// contentRevision is the number of changes of the data of a Secret or ConfigMap on
	// the target, if the resource sends a Secret or ConfigMap under its own name.
	// +optional
	ContentRevision int64 `json:"contentRevision,omitempty"`

	// dependencies lists the shared dependencies that the object on the target may use:
	// those of the spec and, until the object is ready, those of earlier ones.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +optional
	Dependencies []Dependency `json:"dependencies,omitempty"`

	// state is Pending, Scheduled, Submitted, Failed or Deleting.
	// +optional
	State ResourceState `json:"state,omitempty"`

	// target is the target of status.remote and of the condition Ready. While the object
	// moves, it is the previous target, until the object is ready on the new target.
	// +optional
	Target string `json:"target,omitempty"`

	// remote is a copy of the status of the object on the target.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Remote *apiextensionsv1.JSON `json:"remote,omitempty"`

	// remoteUID is the UID of the last object on the target that belonged to this
	// resource.
	// +optional
	RemoteUID types.UID `json:"remoteUID,omitempty"`

	// observedHubGeneration is the generation of the native object on the hub that the
	// target has observed. The status in remote is of this generation or of a later one.
	// It is 0 before the first observation.
	// +optional
	ObservedHubGeneration int64 `json:"observedHubGeneration,omitempty"`

	// drift lists the applied fields that were changed on the target, if the drift policy
	// is Report. It lists at most 20 fields.
	// +listType=atomic
	// +optional
	Drift []Drift `json:"drift,omitempty"`

	// observed is the object on the target without its managed fields, if spec.observe is
	// Full. Secret values are redacted.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Observed *apiextensionsv1.JSON `json:"observed,omitempty"`

	// ownership lists the field managers of status.observed.
	// +listType=atomic
	// +optional
	Ownership []FieldOwner `json:"ownership,omitempty"`
}

// Drift is a field that was changed on a target.
type Drift struct {
	// path of the field, such as .spec.replicas. The path "." is the whole object.
	// +required
	Path string `json:"path"`
	// desired is the applied value, if there is one. Secret values are redacted, and long
	// values are shortened.
	// +optional
	Desired string `json:"desired,omitempty"`
	// observed is the value on the target, if there is one, in the same form.
	// +optional
	Observed string `json:"observed,omitempty"`
	// manager is the field manager on the target that set the value, if it is known.
	// +optional
	Manager string `json:"manager,omitempty"`
	// firstSeenTime is the time at which the difference was first observed.
	// +required
	FirstSeenTime metav1.Time `json:"firstSeenTime"`
}

// FieldOwner is a field manager with its fields.
type FieldOwner struct {
	// manager is the name of the field manager on the target.
	// +required
	Manager string `json:"manager"`
	// fields is the set of its fields, in the format of metadata.managedFields.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Fields apiextensionsv1.JSON `json:"fields"`
}

// KubernetesApplicationResource is one object that runs on a target.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane,shortName=kar
// +kubebuilder:selectablefield:JSONPath=`.spec.targetRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.leavingTargetRef.name`
// +kubebuilder:printcolumn:name="TEMPLATE-KIND",type="string",JSONPath=".spec.template.kind"
// +kubebuilder:printcolumn:name="TEMPLATE-NAME",type="string",JSONPath=".spec.template.metadata.name"
// +kubebuilder:printcolumn:name="CLUSTER",type="string",JSONPath=".spec.targetRef.name"
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.state"
// +kubebuilder:printcolumn:name="READY",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="AGE",type="date",priority=1,JSONPath=".metadata.creationTimestamp"
type KubernetesApplicationResource struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec KubernetesApplicationResourceSpec `json:"spec"`
	// status is the observed state.
	// +optional
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

// ClusterReference names the resource that represents a managed cluster.
type ClusterReference struct {
	// apiVersion of the resource.
	// +required
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`
	// kind of the resource: any cluster-scoped managed resource (S1), or Cluster of
	// cluster.x-k8s.io in the namespace of the KubernetesTarget.
	// +required
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// name of the resource.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// SecretReference names a Secret.
//
// +structType=atomic
type SecretReference struct {
	// name of the Secret.
	// +optional
	Name string `json:"name,omitempty"`
	// namespace of the Secret. Default: the namespace of the KubernetesTarget. A user who
	// sets it needs the right to get the Secret there.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// Allowance restricts the objects that may be sent to a target.
type Allowance struct {
	// kinds lists the allowed kinds. A group or kind may end in "*", which matches any
	// suffix. An empty list allows every namespaced kind. A cluster-scoped kind is allowed
	// only if it is listed without "*".
	// +listType=atomic
	// +optional
	Kinds []metav1.GroupKind `json:"kinds,omitempty"`
	// namespaces lists the allowed namespaces on the target. "team-*" matches every name
	// with the prefix "team-". An empty list allows all namespaces except kube-* and
	// Portico's own namespace, which are allowed only if they are listed.
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
}

// Impersonation is the user that Portico impersonates on a target. "{namespace}" in a
// value is replaced by the namespace of the KubernetesTarget.
type Impersonation struct {
	// user is the name of the impersonated user.
	// +required
	// +kubebuilder:validation:MinLength=1
	User string `json:"user"`
	// groups are the groups of the impersonated user.
	// +listType=set
	// +optional
	Groups []string `json:"groups,omitempty"`
}

// KubernetesTargetSpec is the connection to a cluster, and the objects that it accepts.
type KubernetesTargetSpec struct {
	// clusterRef names the managed cluster to publish. Portico copies its connection
	// Secret to the place in spec.connection, and sets spec.connectionSecretRef to a copy in
	// this namespace. If the user sets spec.connectionSecretRef, clusterRef is not used.
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`

	// connectionSecretRef names the Secret with the connection. Its keys are kubeconfig,
	// or endpoint and clusterCA with either clientCert and clientKey, or token, or username
	// and password. Users with access to Secrets or Pods of this namespace can use the
	// credential directly, without the limits of allow and impersonate.
	// +optional
	ConnectionSecretRef *SecretReference `json:"connectionSecretRef,omitempty"`

	// connection is the place of the copy of the managed cluster's connection Secret:
	// Copy, in this namespace, or Private, in Portico's own namespace. Default: the value
	// of the manager's flag --default-connection.
	// +kubebuilder:validation:Enum=Copy;Private
	// +optional
	Connection ConnectionPolicy `json:"connection,omitempty"`

	// unschedulable excludes the target for new applications. Applications on it remain.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`

	// taints exclude the target for new applications that do not tolerate them, like the
	// taints of a node for Pods. With PreferNoSchedule the target is used if there is no
	// other. NoExecute has the effect of NoSchedule.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// allow restricts the objects that may be sent to the cluster.
	// +optional
	Allow *Allowance `json:"allow,omitempty"`

	// impersonate makes Portico impersonate a user with fewer rights than the credential
	// of the connection Secret has.
	// +optional
	Impersonate *Impersonation `json:"impersonate,omitempty"`

	// dryRun is Always or Never. With Always, which is the default, admission on the hub
	// applies objects on the cluster as a dry run, so that users read its refusal at once.
	// +kubebuilder:validation:Enum=Always;Never
	// +optional
	DryRun DryRunPolicy `json:"dryRun,omitempty"`
}

// ConnectionPolicy is the place of the copy of a managed cluster's connection.
type ConnectionPolicy string

// The policies of connections.
const (
	// ConnectionCopy keeps it in the namespace of the target.
	ConnectionCopy ConnectionPolicy = "Copy"
	// ConnectionPrivate keeps it in Portico's own namespace.
	ConnectionPrivate ConnectionPolicy = "Private"
)

// DryRunPolicy says whether admission applies objects on the target as a dry run.
type DryRunPolicy string

// The policies of dry runs.
const (
	DryRunAlways DryRunPolicy = "Always"
	DryRunNever  DryRunPolicy = "Never"
)

// KubernetesTargetStatus is the observed state of the cluster.
type KubernetesTargetStatus struct {
	// conditions are TargetReachable, Synced and Ready. CredentialValid exists if the
	// expiry of the credential is known, and Published if the publish policies denied a
	// change of the target's claim.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// cluster is the kind and name of the managed cluster, or the host in the connection
	// Secret's endpoint.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// clusterID is a digest of the endpoint and the CA in the connection Secret. It is the
	// same for all targets with this endpoint, in any namespace and with any credential.
	// The cluster cannot influence it.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// serverVersion is the target's Kubernetes version, such as v1.36.3.
	// +optional
	ServerVersion string `json:"serverVersion,omitempty"`

	// lastContactTime is the time of the last response, if the target is unreachable, or
	// the time since which it has been reachable.
	// +optional
	LastContactTime *metav1.Time `json:"lastContactTime,omitempty"`

	// credentialExpiryTime is the expiry of the client certificate or token in the
	// connection Secret, if it is known.
	// +optional
	CredentialExpiryTime *metav1.Time `json:"credentialExpiryTime,omitempty"`

	// leftBehind lists the objects of resources that were released while the target was
	// unreachable: at most 50, the latest last. An object is removed from the list when it
	// belongs to a resource again.
	// +listType=atomic
	// +optional
	LeftBehind []OrphanedObject `json:"leftBehind,omitempty"`
}

// OrphanedObject is an object that remained on a target.
type OrphanedObject struct {
	// object is the kind, namespace and name, such as "Deployment shop/web".
	// +required
	Object string `json:"object"`
	// resource is the name of its KubernetesApplicationResource.
	// +required
	Resource string `json:"resource"`
	// time is the time of the release.
	// +required
	Time metav1.Time `json:"time"`
}

// KubernetesTarget publishes a cluster to a namespace. Applications of that namespace
// may be scheduled to it (S1).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane,shortName=kt
// +kubebuilder:selectablefield:JSONPath=`.spec.connectionSecretRef.name`
// +kubebuilder:printcolumn:name="CLUSTER",type="string",JSONPath=".status.cluster"
// +kubebuilder:printcolumn:name="REACHABLE",type="string",JSONPath=".status.conditions[?(@.type=='TargetReachable')].status"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.serverVersion"
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="SYNCED",type="string",JSONPath=".status.conditions[?(@.type=='Synced')].status"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="UNSCHEDULABLE",type="boolean",JSONPath=".spec.unschedulable",priority=1
type KubernetesTarget struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec KubernetesTargetSpec `json:"spec"`
	// status is the observed state.
	// +optional
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
