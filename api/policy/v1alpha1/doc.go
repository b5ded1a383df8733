// Package v1alpha1 holds the Policy and the names of its API (wellknown.go).
//
// +kubebuilder:object:generate=true
// +groupName=policy.workload.crossplane.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is policy.workload.crossplane.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers this version's kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Policy{}, &PolicyList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
