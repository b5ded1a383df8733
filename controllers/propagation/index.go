package propagation

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// IndexDependencies is the function of policies.DependencyIndex.
func IndexDependencies(object client.Object) []string {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	return policies.DependencyKeys(resource)
}

// IndexPrerequisite is the function of policies.PrerequisiteIndex.
func IndexPrerequisite(object client.Object) []string {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	return policies.PrerequisiteKeys(resource)
}

// TargetIndex finds resources by the names of their targets: the current one, and the
// one that they leave.
const TargetIndex = policies.TargetIndex

// IndexTarget is TargetIndex's function.
func IndexTarget(object client.Object) []string {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	return policies.TargetsOf(resource)
}
