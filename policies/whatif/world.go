// Package whatif rehearses: it says what would become of objects if somebody
// applied them, by the same rules, the same inputs and in the same words as
// admission and the scheduler, and changes nothing.
package whatif

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// World is what there is before anything is applied, in any order.
type World struct {
	Namespaces   []*corev1.Namespace
	Targets      []v1alpha1.KubernetesTarget
	Applications []*v1alpha2.KubernetesApplication
	Resources    []v1alpha1.KubernetesApplicationResource
	// Objects are native ones that may be updated.
	Objects []*unstructured.Unstructured
	// Placed adds to what Resources say: resources by namespace and target.
	Placed map[string]map[string]int
	// Frontier is what targets let in by default.
	Frontier policies.Frontier
}

// Add puts a target into the world, in place of one of the same name.
func (w *World) Add(target v1alpha1.KubernetesTarget) {
	w.Targets = append(slices.DeleteFunc(slices.Clone(w.Targets), func(t v1alpha1.KubernetesTarget) bool {
		return same(&t, &target)
	}), target)
}

// namespace returns one that the world knows nothing more of than its name, if
// it must.
func (w *World) namespace(name string) *corev1.Namespace {
	for _, namespace := range w.Namespaces {
		if namespace.Name == name {
			return namespace
		}
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (w *World) targetsIn(namespace string) []v1alpha1.KubernetesTarget {
	var out []v1alpha1.KubernetesTarget
	for _, target := range w.Targets {
		if target.Namespace == namespace {
			out = append(out, target)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.KubernetesTarget) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (w *World) target(namespace, name string) *v1alpha1.KubernetesTarget {
	for i := range w.Targets {
		if w.Targets[i].Namespace == namespace && w.Targets[i].Name == name {
			return w.Targets[i].DeepCopy()
		}
	}
	return nil
}

func (w *World) application(namespace, name string) *v1alpha2.KubernetesApplication {
	for _, app := range w.Applications {
		if app.Namespace == namespace && app.Name == name {
			return app
		}
	}
	return nil
}

// before returns the object as it is now.
func (w *World) before(object *unstructured.Unstructured) *unstructured.Unstructured {
	for _, old := range w.Objects {
		if old.GetKind() == object.GetKind() && same(old, object) {
			return old
		}
	}
	return nil
}

// placed counts the resources of a namespace by target.
func (w *World) placed(namespace string) map[string]int {
	out := map[string]int{}
	for target, count := range w.Placed[namespace] {
		out[target] += count
	}
	for _, r := range w.Resources {
		if r.Namespace == namespace && r.Spec.TargetRef != nil {
			out[r.Spec.TargetRef.Name]++
		}
	}
	return out
}

func same(a, b metav1.Object) bool {
	return a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}
