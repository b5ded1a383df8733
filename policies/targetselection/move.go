package targetselection

import (
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// SetTarget changes the target of a resource, and records the old target in
// spec.leavingTargetRef. It returns false if nothing changed: a resource with an object
// on a third target has to leave that target first.
func SetTarget(resource *v1alpha1.KubernetesApplicationResource, target string) bool {
	spec := &resource.Spec
	switch {
	case spec.TargetRef != nil && spec.TargetRef.Name == target:
		return false
	case spec.LeavingTargetRef != nil && spec.LeavingTargetRef.Name == target:
		// It moves back. A resource without a target has no object.
		spec.LeavingTargetRef = spec.TargetRef
	case spec.TargetRef == nil:
	case spec.LeavingTargetRef != nil:
		return false
	default:
		spec.LeavingTargetRef = spec.TargetRef
	}
	spec.TargetRef = &v1alpha1.TargetReference{Name: target}
	return true
}

// MoveExclusions returns the targets that an application cannot move to, with the
// reasons. It excludes the target that the application leaves. While resources have
// objects on another target, it excludes all targets but this one.
func MoveExclusions(from string, targets []v1alpha1.KubernetesTarget, members []v1alpha1.KubernetesApplicationResource) map[string]string {
	out := map[string]string{}
	for _, member := range members {
		last := member.Spec.LeavingTargetRef
		if last == nil || member.DeletionTimestamp != nil {
			continue
		}
		for _, target := range targets {
			if target.Name != last.Name {
				out[target.Name] = "has to wait until all resources have left " + last.Name
			}
		}
	}
	out[from] = "is the target to leave"
	return out
}

// CountByTarget counts the resources on each target.
func CountByTarget(resources []v1alpha1.KubernetesApplicationResource) map[string]int {
	out := map[string]int{}
	for _, r := range resources {
		if r.Spec.TargetRef != nil {
			out[r.Spec.TargetRef.Name]++
		}
	}
	return out
}
