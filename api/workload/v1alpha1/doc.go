// Package v1alpha1 holds the KubernetesApplicationResource, the KubernetesTarget, the
// PropagationKind and the KubernetesApplication as in S0, and the names that Portico uses
// in its API (wellknown.go).
//
// +kubebuilder:object:generate=true
// +groupName=workload.crossplane.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is workload.crossplane.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers this version's kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&KubernetesApplication{}, &KubernetesApplicationList{},
		&KubernetesApplicationResource{}, &KubernetesApplicationResourceList{},
		&KubernetesTarget{}, &KubernetesTargetList{},
		&PropagationKind{}, &PropagationKindList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
