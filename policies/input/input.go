// Package input defines the input of policies: one documented, versioned type for each
// type of policy. One function makes it from the objects of a request. Admission, the
// scheduler, audits, the command line and tests all use this package, so that their
// inputs agree.
//
// A new field is a compatible change. The removal of a field, or a change of its
// meaning, requires a new version, which is served together with this one.
//
// Labels and annotations are always present, and may be empty. A field that an object
// does not have is absent, and never null.
package input

import (
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

//go:generate go run ./generate ../schemas

// Version of the types in this package, which policies read as input.version.
const Version = "v1"

// Scheduling is the input of a Scheduling policy: an object, and the targets on which
// it may run.
type Scheduling struct {
	// Version of this document, "v1".
	Version string `json:"version"`
	// Request is the admission request.
	Request Request `json:"request"`
	// Object is the object that is sent to a target: a Deployment, a Service, or an
	// object of any other kind.
	Object Object `json:"object"`
	// OldObject is the object before an update.
	OldObject *Object `json:"oldObject,omitempty"`
	// Namespace is the namespace of the object.
	Namespace Namespace `json:"namespace"`
	// Application is the unit of scheduling of the object.
	Application Application `json:"application"`
	// Targets are the candidates, sorted by name.
	Targets []Target `json:"targets"`
	// Placed is the number of resources on each target, by the name of the target.
	Placed map[string]int `json:"placed"`
	// Parameters are spec.parameters of the policy.
	Parameters map[string]any `json:"parameters"`
}

// Publish is the input of a Publish policy: a cluster, and the namespace to which it is
// published.
type Publish struct {
	// Version of this document, "v1".
	Version string `json:"version"`
	// Request is the admission request.
	Request Request `json:"request"`
	// Target is the KubernetesTarget to publish.
	Target Target `json:"target"`
	// OldTarget is the target before an update.
	OldTarget *Target `json:"oldTarget,omitempty"`
	// Namespace is the namespace of the target.
	Namespace Namespace `json:"namespace"`
	// Cluster is the published cluster, if it is known.
	Cluster Cluster `json:"cluster"`
	// Existing are the other targets of the namespace, and the targets of the same
	// cluster in other namespaces, sorted by namespace and name.
	Existing []Target `json:"existing"`
	// Parameters are spec.parameters of the policy.
	Parameters map[string]any `json:"parameters"`
}

// Request is the admission request, or an audit of an existing object.
type Request struct {
	// Operation is CREATE or UPDATE, or AUDIT for an existing object without a request.
	Operation string `json:"operation"`
	// DryRun is true if the object is not stored.
	DryRun bool `json:"dryRun"`
	// Kind of the object.
	Kind Kind `json:"kind"`
	// Name of the object.
	Name string `json:"name"`
	// Namespace of the object.
	Namespace string `json:"namespace"`
	// User of the request.
	User User `json:"user"`
}

// Kind of an object.
type Kind struct {
	// Group of the kind; "" is the core group.
	Group string `json:"group"`
	// Version, such as v1.
	Version string `json:"version"`
	// Kind, such as Deployment.
	Kind string `json:"kind"`
}

// User of a request; empty in an audit.
type User struct {
	// Username, such as system:serviceaccount:team-a:deployer.
	Username string `json:"username"`
	// Groups of the user.
	Groups []string `json:"groups"`
	// UID of the user, if the authenticator sets it.
	UID string `json:"uid,omitempty"`
}

// Object is an object of any kind. Policies see only the top-level fields that are
// listed here. They never see managedFields, the last-applied annotation and the
// content of a Secret, at any depth.
type Object struct {
	// APIVersion, such as apps/v1.
	APIVersion string `json:"apiVersion"`
	// Kind, such as Deployment.
	Kind string `json:"kind"`
	// Metadata of the object.
	Metadata Metadata `json:"metadata"`
	// Spec of the object.
	Spec map[string]any `json:"spec,omitempty"`
	// Status of the object.
	Status map[string]any `json:"status,omitempty"`
	// Data of a ConfigMap.
	Data map[string]any `json:"data,omitempty"`
	// Type of a Secret.
	Type string `json:"type,omitempty"`
	// Rules of a Role.
	Rules []any `json:"rules,omitempty"`
	// RoleRef of a RoleBinding.
	RoleRef map[string]any `json:"roleRef,omitempty"`
	// Subjects of a RoleBinding.
	Subjects []any `json:"subjects,omitempty"`
}

// Metadata of an object.
type Metadata struct {
	// Name of the object.
	Name string `json:"name"`
	// GenerateName of the object, if it has one.
	GenerateName string `json:"generateName,omitempty"`
	// Namespace of the object.
	Namespace string `json:"namespace"`
	// Labels of the object. They are never absent.
	Labels map[string]string `json:"labels"`
	// Annotations of the object. They are never absent.
	Annotations map[string]string `json:"annotations"`
	// UID of a stored object.
	UID string `json:"uid,omitempty"`
	// CreationTimestamp of a stored object, in RFC 3339.
	CreationTimestamp string `json:"creationTimestamp,omitempty"`
	// DeletionTimestamp of an object that is being deleted, in RFC 3339.
	DeletionTimestamp string `json:"deletionTimestamp,omitempty"`
}

// Namespace of the object or target.
type Namespace struct {
	// Metadata of the namespace.
	Metadata NamespaceMetadata `json:"metadata"`
}

// NamespaceMetadata is the metadata of a namespace.
type NamespaceMetadata struct {
	// Name of the namespace.
	Name string `json:"name"`
	// Labels of the namespace. They are never absent.
	Labels map[string]string `json:"labels"`
	// Annotations of the namespace. They are never absent.
	Annotations map[string]string `json:"annotations"`
}

// Application is a unit of scheduling: all its resources run on one target.
type Application struct {
	// Name of the KubernetesApplication.
	Name string `json:"name"`
	// Target is the name of its target, if one was selected.
	Target string `json:"target,omitempty"`
}

// Target is a KubernetesTarget: a cluster that is published to a namespace.
type Target struct {
	// Metadata of the target. Applications select targets by their labels.
	Metadata Metadata `json:"metadata"`
	// Spec of the target.
	Spec TargetSpec `json:"spec"`
	// Status of the target.
	Status TargetStatus `json:"status"`
	// Cluster of the target.
	Cluster Cluster `json:"cluster"`
}

// TargetSpec is the spec of a target.
type TargetSpec struct {
	// ClusterRef names the published managed cluster, if there is one.
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	// ConnectionSecretRef names the connection Secret. Policies never see its content.
	ConnectionSecretRef *SecretReference `json:"connectionSecretRef,omitempty"`
	// Connection is the place of the copy of the managed cluster's connection Secret:
	// Copy, in the namespace of the target, or Private, in Portico's own namespace. If
	// it is absent, the manager's default applies.
	Connection string `json:"connection,omitempty"`
}

// ClusterReference names a managed cluster.
type ClusterReference struct {
	// APIVersion of the managed cluster, with its group.
	APIVersion string `json:"apiVersion"`
	// Kind of the managed cluster, such as GKECluster.
	Kind string `json:"kind"`
	// Name of the managed cluster.
	Name string `json:"name"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Name of the Secret.
	Name string `json:"name"`
	// Namespace of the Secret, if it is not the namespace of the target.
	Namespace string `json:"namespace,omitempty"`
}

// TargetStatus is the status of a target.
type TargetStatus struct {
	// Conditions of the target.
	Conditions []Condition `json:"conditions"`
}

// Condition of a target.
type Condition struct {
	// Type, such as TargetReachable.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status string `json:"status"`
	// Reason of the status, in one word.
	Reason string `json:"reason"`
}

// Cluster is the cluster of a target, if it is known.
type Cluster struct {
	// ID identifies the cluster. It is the same for every target of the cluster.
	ID string `json:"id,omitempty"`
	// Version of Kubernetes, such as v1.36.3.
	Version string `json:"version,omitempty"`
}

// Empty returns an empty input of the type; nil for a Library, which has no input.
func Empty(t policyv1alpha1.PolicyType) any {
	switch t {
	case policyv1alpha1.Scheduling:
		return &Scheduling{}
	case policyv1alpha1.Publish:
		return &Publish{}
	default:
		return nil
	}
}
