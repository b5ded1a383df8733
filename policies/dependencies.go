package policies

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// A resource may need other objects of its namespace on its target. A shared dependency
// has a resource of its own for each of these targets. Portico makes that resource when
// the first resource on the target needs it, and deletes it after the last.

// DependencyIndex finds resources by the objects that they need or send. Its keys are
// those of DependencyKey.
const DependencyIndex = "spec.dependencies"

// DependencyKey returns the key of a Secret, ConfigMap or ServiceAccount in
// DependencyIndex.
func DependencyKey(kind, name string) string { return kind + "/" + name }

// DependencyKeys returns the keys of a resource in DependencyIndex.
func DependencyKeys(resource *v1alpha1.KubernetesApplicationResource) []string {
	var out []string
	for _, d := range slices.Concat(resource.Spec.Dependencies, resource.Status.Dependencies) {
		out = append(out, DependencyKey(d.Kind, d.Name))
	}
	for _, ref := range resource.Spec.Secrets {
		if ref.Name != "" {
			out = append(out, DependencyKey(references.SecretKind, ref.Name))
		}
	}
	if owner := DependencyOwner(resource); owner != nil {
		out = append(out, DependencyKey(owner.Kind, owner.Name))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsSharedDependency tells whether Portico made a resource for a shared dependency.
func IsSharedDependency(resource metav1.Object) bool {
	labels := resource.GetLabels()
	return labels[v1alpha1.DependencyLabel] == v1alpha1.DependencyShared && labels[v1alpha1.FrontDoorLabel] == v1alpha1.FrontDoor
}

// LostNativeObject tells whether a resource was created for a native object, and has no
// owner now: its native object was deleted with --cascade=orphan, or a backup left the
// owner reference out.
func LostNativeObject(resource metav1.Object) bool {
	return resource.GetLabels()[v1alpha1.FrontDoorLabel] == v1alpha1.FrontDoor && metav1.GetControllerOf(resource) == nil
}

// DependencyOwner returns the native object that controls a resource, if other resources
// may need that object; nil for any other resource.
func DependencyOwner(resource metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(resource)
	if owner == nil {
		return nil
	}
	gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	if kinds.HasContent(gvk) || isShareable(gvk.GroupKind()) {
		return owner
	}
	return nil
}

// isShareable tells whether objects of a kind are shared dependencies, and nothing else.
func isShareable(kind schema.GroupKind) bool {
	return slices.ContainsFunc([]string{kinds.ServiceAccountKind, kinds.RoleKind, kinds.RoleBindingKind}, func(name string) bool {
		return kinds.DependencyKind(name).GroupKind() == kind
	})
}

// NeedsShared tells whether a resource needs a shared dependency.
func NeedsShared(resource *v1alpha1.KubernetesApplicationResource, kind, name string) bool {
	return containsShared(resource.Spec.Dependencies, kind, name)
}

func containsShared(list []v1alpha1.Dependency, kind, name string) bool {
	return slices.ContainsFunc(list, func(d v1alpha1.Dependency) bool { return d.Shared && d.Kind == kind && d.Name == name })
}

// DependenciesInUse returns the shared dependencies that the object of a resource may use
// on its target. settled says that the object is ready as the spec has it: before that,
// Pods of an earlier spec may run.
func DependenciesInUse(resource *v1alpha1.KubernetesApplicationResource, settled bool) []v1alpha1.Dependency {
	var out []v1alpha1.Dependency
	for _, d := range resource.Spec.Dependencies {
		if d.Shared {
			out = append(out, v1alpha1.Dependency{Kind: d.Kind, Name: d.Name, Shared: true})
		}
	}
	if settled {
		return out
	}
	for _, d := range resource.Status.Dependencies {
		if !containsShared(out, d.Kind, d.Name) {
			out = append(out, d)
		}
	}
	return out
}

// HasCopy tells whether a resource has a copy of a Secret or ConfigMap, under another name.
// resource may be nil.
func HasCopy(resource *v1alpha1.KubernetesApplicationResource, kind, name string) bool {
	return resource != nil && slices.ContainsFunc(resource.Spec.Dependencies, func(d v1alpha1.Dependency) bool {
		return !d.Shared && !d.Native && d.Kind == kind && d.Name == name
	})
}

// SendsDependency tells whether a resource sends an object as a shared dependency.
// A resource of another object may have that name.
func SendsDependency(resource metav1.Object, kind, name string) bool {
	owner := DependencyOwner(resource)
	return owner != nil && owner.Kind == kind && owner.Name == name && IsSharedDependency(resource)
}

// IsTaken tells whether the object of a shared dependency belongs to somebody else on its
// target. Resources that need a Secret or ConfigMap then have a copy, under another name.
func IsTaken(resource *v1alpha1.KubernetesApplicationResource) bool {
	if !IsSharedDependency(resource) {
		return false
	}
	synced := meta.FindStatusCondition(resource.Status.Conditions, v1alpha1.Synced)
	return synced != nil && synced.Status == metav1.ConditionFalse && synced.Reason == v1alpha1.ReasonOwnershipConflict
}

// TargetsOfDependency returns the targets on which resources need a shared dependency,
// in order. On the targets in keep a resource is still being deleted, or moves away, or lost
// its native object, or needed the dependency before its last change: the dependency stays,
// and is not made.
func TargetsOfDependency(dependents []v1alpha1.KubernetesApplicationResource, kind, name string) (need, keep []string) {
	for i := range dependents {
		resource := &dependents[i]
		needs := NeedsShared(resource, kind, name)
		if needs || containsShared(resource.Status.Dependencies, kind, name) {
			keep = append(keep, TargetsOf(resource)...)
		}
		if !needs {
			continue
		}
		if ref := resource.Spec.TargetRef; ref != nil && resource.DeletionTimestamp == nil && !LostNativeObject(resource) {
			need = append(need, ref.Name)
		}
	}
	for _, list := range []*[]string{&need, &keep} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return need, keep
}

// validateSharedDependencies returns an error for each shared dependency of an object in
// another namespace: the dependency is applied in the namespace that it has on the hub.
func validateSharedDependencies(resource *v1alpha1.KubernetesApplicationResource, template *unstructured.Unstructured) field.ErrorList {
	if template == nil || template.GetNamespace() == resource.Namespace {
		return nil
	}
	var errs field.ErrorList
	for i, d := range resource.Spec.Dependencies {
		if d.Shared {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "dependencies").Index(i).Child("shared"), fmt.Sprintf(
				"is for an object in namespace %s, where %s %s is applied", resource.Namespace, d.Kind, d.Name)))
		}
	}
	return errs
}

// RequiredReferences lists the references of an object's Pods without which the Pods do
// not start, their ServiceAccount first.
func RequiredReferences(object *unstructured.Unstructured) []references.Reference {
	var out []references.Reference
	if account := references.ServiceAccount(object); account != "" && account != kinds.DefaultServiceAccount {
		out = append(out, references.Reference{Kind: kinds.ServiceAccountKind, Name: account, Field: references.ServiceAccountField(object)})
	}
	for _, r := range references.Of(object) {
		if !r.Optional {
			out = append(out, r)
		}
	}
	return out
}
