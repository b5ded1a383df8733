// Package input defines the input of policies: one documented, versioned type for each
// type of policy, made by one function from the objects of a request. Webhook,
// scheduler, audit, command line and tests all use these, so that they cannot
// disagree.
//
// Adding a field is compatible. Removing one, or changing its meaning, makes a new
// version that is served next to this one.
//
// Labels and annotations are always present, and may be empty. A field that an object
// does not have is absent, never null.
package input

import (
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

//go:generate go run ./generate ../schemas

// Version of the types in this package, which policies read as input.version.
const Version = "v1"

// Scheduling is the input of a Scheduling policy: an object that is to run, and the
// targets it could run on.
type Scheduling struct {
	// Version of this document, "v1".
	Version string `json:"version"`
	// Request that is reviewed.
	Request Request `json:"request"`
	// Object that is to run: a Deployment, a Service, or any other object that
	// is sent to a target.
	Object Object `json:"object"`
	// OldObject is the object as it was, in an update.
	OldObject *Object `json:"oldObject,omitempty"`
	// Namespace is the namespace of the object.
	Namespace Namespace `json:"namespace"`
	// Application is the unit of scheduling the object belongs to.
	Application Application `json:"application"`
	// Targets are the candidates, sorted by name.
	Targets []Target `json:"targets"`
	// Placed counts, by the name of a target, the resources it has already.
	Placed map[string]int `json:"placed"`
	// Parameters are the policy's own, from its spec.
	Parameters map[string]any `json:"parameters"`
}

// Publish is the input of a Publish policy: a cluster that is to be published to a
// namespace.
type Publish struct {
	// Version of this document, "v1".
	Version string `json:"version"`
	// Request that is reviewed.
	Request Request `json:"request"`
	// Target is the KubernetesTarget that shall be published.
	Target Target `json:"target"`
	// OldTarget is the target as it was, in an update.
	OldTarget *Target `json:"oldTarget,omitempty"`
	// Namespace is the namespace it is published to.
	Namespace Namespace `json:"namespace"`
	// Cluster is the cluster it lends, as far as it is known.
	Cluster Cluster `json:"cluster"`
	// Existing are the other targets in the same namespace, and those of the
	// same cluster in others, sorted by namespace and name.
	Existing []Target `json:"existing"`
	// Parameters are the policy's own, from its spec.
	Parameters map[string]any `json:"parameters"`
}

// Request is the admission request, or an audit of an object that exists.
type Request struct {
	// Operation is CREATE, UPDATE, or AUDIT for an object that exists, without a
	// request.
	Operation string `json:"operation"`
	// DryRun is true when nothing will be stored.
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
	// Group, "" for the core group.
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
	// Groups the user is in.
	Groups []string `json:"groups"`
	// UID of the user, when the authenticator sets it.
	UID string `json:"uid,omitempty"`
}

// Object is an object of any kind. Of its top-level fields a policy sees those
// listed here. managedFields, the last-applied annotation and the content of a
// Secret are never shown, at any depth.
type Object struct {
	// APIVersion, such as apps/v1.
	APIVersion string `json:"apiVersion"`
	// Kind, such as Deployment.
	Kind string `json:"kind"`
	// Metadata of the object.
	Metadata Metadata `json:"metadata"`
	// Spec as it was written.
	Spec map[string]any `json:"spec,omitempty"`
	// Status as it is.
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
	// GenerateName it was made from, if any.
	GenerateName string `json:"generateName,omitempty"`
	// Namespace it is in.
	Namespace string `json:"namespace"`
	// Labels, never absent.
	Labels map[string]string `json:"labels"`
	// Annotations, never absent.
	Annotations map[string]string `json:"annotations"`
	// UID of a stored object.
	UID string `json:"uid,omitempty"`
	// CreationTimestamp of a stored object, in RFC 3339.
	CreationTimestamp string `json:"creationTimestamp,omitempty"`
	// DeletionTimestamp of an object that is going, in RFC 3339.
	DeletionTimestamp string `json:"deletionTimestamp,omitempty"`
}

// Namespace of the object or target.
type Namespace struct {
	// Metadata of the namespace.
	Metadata NamespaceMetadata `json:"metadata"`
}

// NamespaceMetadata of a namespace.
type NamespaceMetadata struct {
	// Name of the namespace.
	Name string `json:"name"`
	// Labels, never absent.
	Labels map[string]string `json:"labels"`
	// Annotations, never absent.
	Annotations map[string]string `json:"annotations"`
}

// Application is a unit of scheduling: all its resources run on one target.
type Application struct {
	// Name of the KubernetesApplication.
	Name string `json:"name"`
	// Target it runs on, once one was chosen.
	Target string `json:"target,omitempty"`
}

// Target is a KubernetesTarget: a cluster that is lent to a namespace.
type Target struct {
	// Metadata of the target. Applications select targets by the labels.
	Metadata Metadata `json:"metadata"`
	// Spec of the target.
	Spec TargetSpec `json:"spec"`
	// Status of the target.
	Status TargetStatus `json:"status"`
	// Cluster behind it.
	Cluster Cluster `json:"cluster"`
}

// TargetSpec of a target.
type TargetSpec struct {
	// ClusterRef names the managed cluster that is published, if it is one.
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	// ConnectionSecretRef names the Secret with the connection. The content of the
	// Secret is never shown.
	ConnectionSecretRef *SecretReference `json:"connectionSecretRef,omitempty"`
	// Connection is the place of the copy of the managed cluster's connection:
	// Copy, in the namespace of the target, or Private, in Portico's own. Absent,
	// the manager's default decides.
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
	// Namespace of the Secret, if it is not that of the target.
	Namespace string `json:"namespace,omitempty"`
}

// TargetStatus of a target.
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
	// Reason in one word.
	Reason string `json:"reason"`
}

// Cluster behind a target, as far as it is known.
type Cluster struct {
	// ID is the same for every target of one cluster: the UID of its namespace
	// kube-system.
	ID string `json:"id,omitempty"`
	// Version of Kubernetes, such as v1.36.3.
	Version string `json:"version,omitempty"`
}

// Empty returns a new, empty input of the type, nil for a Library, which has none.
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
