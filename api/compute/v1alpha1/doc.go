// Package v1alpha1 holds the KubernetesCluster claim of Crossplane, as S1 and S3
// print it, for hubs where Crossplane does not bring it.
//
// Portico does not bind claims. It publishes those that are bound, and reads no
// more of them than that takes, so that it gets along with another definition of
// the kind too.
//
// +kubebuilder:object:generate=true
// +groupName=compute.crossplane.io
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is compute.crossplane.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "compute.crossplane.io", Version: "v1alpha1"}

// KubernetesClusterKind is the claim's kind, in whatever version it is served.
var KubernetesClusterKind = schema.GroupKind{Group: GroupVersion.Group, Kind: "KubernetesCluster"}
