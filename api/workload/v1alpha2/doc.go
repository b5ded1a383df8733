// Package v1alpha2 holds the KubernetesApplication, the unit of scheduling.
//
// +kubebuilder:object:generate=true
// +groupName=workload.crossplane.io
package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// GroupVersion is workload.crossplane.io/v1alpha2.
var GroupVersion = schema.GroupVersion{Group: v1alpha1.Group, Version: "v1alpha2"}

// AddToScheme registers this version's kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &KubernetesApplication{}, &KubernetesApplicationList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
