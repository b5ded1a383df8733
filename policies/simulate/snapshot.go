// Package simulate computes the results of requests without making them. It evaluates
// policies for manifests as if a user applied them, and for existing objects. The
// rules, inputs and texts are those of admission and of the scheduler. It changes
// nothing on a cluster.
package simulate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/targetselection"
)

// Snapshot holds the existing objects of a hub, in any order. An audit changes
// nothing in it. Cases and Run add the objects that they apply.
type Snapshot struct {
	Namespaces   []*corev1.Namespace
	Targets      []v1alpha1.KubernetesTarget
	Applications []*v1alpha2.KubernetesApplication
	Resources    []v1alpha1.KubernetesApplicationResource
	// Objects are native objects with the schedule label.
	Objects []*unstructured.Unstructured
	// Placed counts resources, by namespace and target, in addition to Resources.
	Placed map[string]map[string]int
	// AllowDefaults apply to targets without spec.allow. They name Portico's own
	// namespace, for which no policies are evaluated.
	AllowDefaults policies.AllowDefaults
}

// SetTarget adds a target, or replaces the one of the same name.
func (s *Snapshot) SetTarget(target v1alpha1.KubernetesTarget) {
	s.Targets = append(slices.DeleteFunc(slices.Clone(s.Targets), func(t v1alpha1.KubernetesTarget) bool {
		return sameName(&t, &target)
	}), target)
}

// namespace returns a Namespace by name. A missing Namespace has no labels and no
// annotations.
func (s *Snapshot) namespace(name string) *corev1.Namespace {
	for _, namespace := range s.Namespaces {
		if namespace.Name == name {
			return namespace
		}
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (s *Snapshot) targetsIn(namespace string) []v1alpha1.KubernetesTarget {
	var out []v1alpha1.KubernetesTarget
	for _, target := range s.Targets {
		if target.Namespace == namespace {
			out = append(out, target)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.KubernetesTarget) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (s *Snapshot) target(namespace, name string) *v1alpha1.KubernetesTarget {
	for i := range s.Targets {
		if s.Targets[i].Namespace == namespace && s.Targets[i].Name == name {
			return s.Targets[i].DeepCopy()
		}
	}
	return nil
}

func (s *Snapshot) application(namespace, name string) *v1alpha2.KubernetesApplication {
	for _, app := range s.Applications {
		if app.Namespace == namespace && app.Name == name {
			return app
		}
	}
	return nil
}

// existing returns the stored form of an object, or nil.
func (s *Snapshot) existing(object *unstructured.Unstructured) *unstructured.Unstructured {
	for _, old := range s.Objects {
		if old.GetKind() == object.GetKind() && sameName(old, object) {
			return old
		}
	}
	return nil
}

// candidates returns the targets of a namespace, and counts of the resources on
// each.
func (s *Snapshot) candidates(namespace string) targetselection.Candidates {
	return targetselection.Candidates{Targets: s.targetsIn(namespace), Placed: s.placed(namespace), AllowDefaults: s.AllowDefaults}
}

// placed counts the resources of a namespace by target.
func (s *Snapshot) placed(namespace string) map[string]int {
	out := map[string]int{}
	for target, count := range s.Placed[namespace] {
		out[target] += count
	}
	for _, r := range s.Resources {
		if r.Namespace == namespace && r.Spec.TargetRef != nil {
			out[r.Spec.TargetRef.Name]++
		}
	}
	return out
}

func sameName(a, b metav1.Object) bool {
	return a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}
