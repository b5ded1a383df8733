package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// The deletion of a Namespace deletes all objects in it. So Portico deletes a
// Namespace that holds objects of others only if an annotation says so.

// NamespaceOf returns the name of the Namespace that a resource creates on its
// target; "" for a resource of another kind.
func NamespaceOf(resource *v1alpha1.KubernetesApplicationResource) string {
	object := TemplateObject(resource.Spec.Template)
	if object == nil || object.GetAPIVersion() != "v1" || object.GetKind() != "Namespace" {
		return ""
	}
	return object.GetName()
}

// HasForceAnnotation tells whether an object has the annotation ForceAnnotation.
func HasForceAnnotation(object metav1.Object) bool {
	return object != nil && object.GetAnnotations()[v1alpha1.ForceAnnotation] == "true"
}

// ObjectCounts counts the objects in a namespace of a target that are not of the
// application that made the Namespace.
type ObjectCounts struct {
	// Counts of objects, by kind.
	Counts map[string]int
	// More tells that there may be more objects than Counts.
	More bool
	// Hidden are the kinds that the account of the target may not list.
	Hidden []string
}

// Empty tells whether the namespace holds no objects of others, as far as the target
// tells.
func (o ObjectCounts) Empty() bool { return len(o.Counts) == 0 && !o.More && len(o.Hidden) == 0 }

// Add counts objects of a kind.
func (o *ObjectCounts) Add(kind string, n int) {
	if n == 0 {
		return
	}
	if o.Counts == nil {
		o.Counts = map[string]int{}
	}
	o.Counts[kind] += n
}

func (o ObjectCounts) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(o.Counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", o.Counts[kind], kind))
	}
	if o.More {
		parts = append(parts, "and more")
	}
	for _, kind := range o.Hidden {
		parts = append(parts, "an unknown number of "+kind+", which the account of the target may not list")
	}
	return strings.Join(parts, ", ")
}

// NamespaceInUseMessage returns why the Namespace of a resource is not deleted on a
// target, and how to continue; "" when it may be deleted.
func NamespaceInUseMessage(resource *v1alpha1.KubernetesApplicationResource, target string, o ObjectCounts) string {
	if o.Empty() {
		return ""
	}
	return fmt.Sprintf("Namespace %s on target %s holds objects of others, which its deletion would delete: %s; delete or move them, "+
		"or annotate kubernetesapplicationresource %s with %s=%s, to leave the Namespace there, or with %s=true, to delete them too",
		NamespaceOf(resource), target, o, resource.Name, v1alpha1.DeletionAnnotation, v1alpha1.DeletionOrphan, v1alpha1.ForceAnnotation)
}

// OthersInNamespace splits the resources of a namespace of the hub by a Namespace on
// a target. own belong to the application that created the Namespace. others send
// objects into it.
func OthersInNamespace(made *v1alpha1.KubernetesApplicationResource, target string, all []v1alpha1.KubernetesApplicationResource) (own, others map[types.NamespacedName]bool) {
	own, others = map[types.NamespacedName]bool{{Namespace: made.Namespace, Name: made.Name}: true}, map[types.NamespacedName]bool{}
	application, member := made.Labels[v1alpha1.ApplicationLabel]
	namespace := NamespaceOf(made)
	for i := range all {
		r := &all[i]
		key := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
		switch object := TemplateObject(r.Spec.Template); {
		case own[key]:
		case member && r.Labels[v1alpha1.ApplicationLabel] == application:
			own[key] = true
		case object != nil && object.GetNamespace() == namespace && r.DeletionTimestamp == nil && slices.Contains(TargetsOf(r), target):
			others[key] = true
		}
	}
	return own, others
}
