// Package v1alpha1 holds the KubernetesCluster claim of Crossplane, as S1 and S3 print
// it, for hubs without Crossplane. Portico does not bind claims. It publishes bound
// claims, and reads only the fields it needs, so that another definition of the kind
// works, too.
//
// +kubebuilder:object:generate=true
// +groupName=compute.crossplane.io
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is compute.crossplane.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "compute.crossplane.io", Version: "v1alpha1"}

// KubernetesClusterKind is the claim's kind, for any served version.
var KubernetesClusterKind = schema.GroupKind{Group: GroupVersion.Group, Kind: "KubernetesCluster"}
