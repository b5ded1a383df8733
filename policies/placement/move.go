package placement

import (
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Relocate gives a resource a target, and notes which it leaves for it. It tells
// whether that changed anything: a resource that is still leaving a third target
// has to leave that first.
func Relocate(resource *v1alpha1.KubernetesApplicationResource, target string) bool {
	spec := &resource.Spec
	switch {
	case spec.TargetRef != nil && spec.TargetRef.Name == target:
		return false
	case spec.LeavingTargetRef != nil && spec.LeavingTargetRef.Name == target:
		// It turns back. Without a target it never got further.
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

// Leaving are the targets that an application on its way from one cannot go to,
// and why: the one to leave, and while resources have yet to leave another, all
// but that other.
func Leaving(from string, targets []v1alpha1.KubernetesTarget, members []v1alpha1.KubernetesApplicationResource) map[string]string {
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
	out[from] = "is the one to leave"
	return out
}

// Placed counts the resources on each target, for a Question.
func Placed(resources []v1alpha1.KubernetesApplicationResource) map[string]int {
	out := map[string]int{}
	for _, r := range resources {
		if r.Spec.TargetRef != nil {
			out[r.Spec.TargetRef.Name]++
		}
	}
	return out
}
