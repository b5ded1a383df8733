package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// AllowItem is the kind and the namespace of an object. spec.allow of a target allows
// or denies such items.
type AllowItem struct {
	Kind schema.GroupVersionKind
	// Namespace is the namespace on the target; empty when the kind has none.
	Namespace string
}

// ClusterScopedFunc tells whether a kind is cluster-scoped.
type ClusterScopedFunc func(schema.GroupVersionKind) (clusterScoped bool)

// ClusterScopedFrom returns a function that looks up kinds in a REST mapper. A kind
// that the cluster does not have counts as namespaced. The kind may exist on the
// target, whose API server decides before an object is sent there.
func ClusterScopedFrom(kinds meta.RESTMapper) ClusterScopedFunc {
	return func(kind schema.GroupVersionKind) bool {
		mapping, err := kinds.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
	}
}

// AllowItemOf returns the item of a template. It ignores the namespace of a
// cluster-scoped template.
func AllowItemOf(template *unstructured.Unstructured, clusterScoped ClusterScopedFunc) AllowItem {
	kind := template.GroupVersionKind()
	if clusterScoped(kind) {
		return AllowItem{Kind: kind}
	}
	return AllowItem{Kind: kind, Namespace: cmp.Or(template.GetNamespace(), metav1.NamespaceDefault)}
}

// AllowDefaults denies the following unless spec.allow of a target names it: kube-
// namespaces, the namespace of Portico, and cluster-scoped kinds.
type AllowDefaults struct {
	// PorticoNamespace is the namespace that Portico runs in.
	PorticoNamespace string
}

// kubeNamespacePrefix begins the names of the namespaces of Kubernetes itself.
const kubeNamespacePrefix = "kube-"

// DeniedReason returns why a target does not allow an item, and which spec.allow
// would; "" when the target allows it. A star matches nothing that AllowDefaults
// denies: spec.allow has to name it.
func (f AllowDefaults) DeniedReason(target *v1alpha1.KubernetesTarget, item AllowItem) string {
	allow := v1alpha1.Allowance{}
	if target.Spec.Allow != nil {
		allow = *target.Spec.Allow
	}
	kind := item.Kind.GroupKind()
	if !allowsKind(allow.Kinds, kind, item.Namespace == "") {
		return fmt.Sprintf("does not allow %s; its spec.allow.kinds would have to list {group: %q, kind: %s}", kind, kind.Group, kind.Kind)
	}
	if item.Namespace != "" && !f.allowsNamespace(allow.Namespaces, item.Namespace) {
		return fmt.Sprintf("does not allow namespace %s; its spec.allow.namespaces would have to list it", item.Namespace)
	}
	return ""
}

func allowsKind(kinds []metav1.GroupKind, kind schema.GroupKind, clusterScoped bool) bool {
	for _, k := range kinds {
		if matchesPattern(k.Group, kind.Group) && matchesPattern(k.Kind, kind.Kind) && (!clusterScoped || k.Kind == kind.Kind) {
			return true
		}
	}
	return len(kinds) == 0 && !clusterScoped
}

func (f AllowDefaults) allowsNamespace(patterns []string, namespace string) bool {
	isNamed := func(string) bool { return true }
	switch {
	case namespace == f.PorticoNamespace:
		isNamed = func(pattern string) bool { return pattern == namespace }
	case strings.HasPrefix(namespace, kubeNamespacePrefix):
		isNamed = func(pattern string) bool { return strings.HasPrefix(pattern, kubeNamespacePrefix) }
	case len(patterns) == 0:
		return true
	}
	for _, pattern := range patterns {
		if matchesPattern(pattern, namespace) && isNamed(pattern) {
			return true
		}
	}
	return false
}

// matchesPattern tells whether a name matches a pattern. A star at the end of the
// pattern matches any suffix.
func matchesPattern(pattern, name string) bool {
	if start, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}

// NewObjectsDeniedReason returns why a target takes no new objects; "" when it does.
// A nil target is one that is not published.
func NewObjectsDeniedReason(target *v1alpha1.KubernetesTarget) string {
	if target == nil || target.DeletionTimestamp == nil {
		return ""
	}
	return "is being deleted"
}

// validateAcceptsNewObjects returns an error if a target is being deleted, and so
// takes no new objects.
func validateAcceptsNewObjects(target *v1alpha1.KubernetesTarget, path *field.Path, remedy string) field.ErrorList {
	why := NewObjectsDeniedReason(target)
	if why == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("its target is %s, which %s and accepts no new objects; %s", target.Name, why, remedy))}
}

const otherTargetHint = "name another target, or leave spec.targetRef out to have one selected"

// ValidateNative returns an error if the target of its application does not allow a
// native object. A nil target, which may be published later, allows everything.
func (f AllowDefaults) ValidateNative(object *unstructured.Unstructured, target *v1alpha1.KubernetesTarget) field.ErrorList {
	return f.validate(target, AllowItemOfNative(object), schedulePath)
}

// AllowItemOfNative returns the item of a native object, which is always namespaced.
func AllowItemOfNative(object *unstructured.Unstructured) AllowItem {
	return AllowItemOf(object, func(schema.GroupVersionKind) bool { return false })
}

// ValidateResource returns an error if a target does not allow a resource. It allows
// a resource that was on the target before. old is nil on create.
func (f AllowDefaults) ValidateResource(resource, old *v1alpha1.KubernetesApplicationResource, target *v1alpha1.KubernetesTarget, clusterScoped ClusterScopedFunc) field.ErrorList {
	if errs := validateNewOnTarget(resource, old, target); len(errs) > 0 {
		return errs
	}
	validate := func(r *v1alpha1.KubernetesApplicationResource) field.ErrorList {
		return f.validateTemplate(r.Spec.Template, target, clusterScoped, field.NewPath("spec", "template"))
	}
	errs := validate(resource)
	if len(errs) > 0 && old != nil && equality.Semantic.DeepEqual(old.Spec.TargetRef, resource.Spec.TargetRef) {
		return RatchetErrors(errs, validate(old))
	}
	return errs
}

// validateNewOnTarget refuses a resource that was not on its target before, if the target
// is being deleted.
func validateNewOnTarget(resource, old *v1alpha1.KubernetesApplicationResource, target *v1alpha1.KubernetesTarget) field.ErrorList {
	if ref := resource.Spec.TargetRef; ref != nil {
		if old != nil && sameTarget(old.Spec.TargetRef, ref) {
			return nil
		}
		return validateAcceptsNewObjects(target, field.NewPath("spec", "targetRef"), otherTargetHint)
	}
	application := resource.Labels[v1alpha1.ApplicationLabel]
	if old != nil && old.Spec.TargetRef == nil && old.Labels[v1alpha1.ApplicationLabel] == application {
		return nil
	}
	return validateAcceptsNewObjects(target, applicationPath, fmt.Sprintf("wait until KubernetesApplication %s has moved, or name another", application))
}

// validateNewTemplates refuses an application that was not on its target before, and the
// templates that it did not have, if the target is being deleted.
func validateNewTemplates(app, old *v1alpha2.KubernetesApplication, target *v1alpha1.KubernetesTarget) field.ErrorList {
	if old == nil || !sameTarget(old.Spec.TargetRef, app.Spec.TargetRef) {
		return validateAcceptsNewObjects(target, field.NewPath("spec", "targetRef"), otherTargetHint)
	}
	had := map[string]bool{}
	for _, t := range old.Spec.ResourceTemplates {
		had[t.Metadata.Name] = true
	}
	var errs field.ErrorList
	for i, t := range app.Spec.ResourceTemplates {
		if !had[t.Metadata.Name] {
			errs = append(errs, validateAcceptsNewObjects(target, field.NewPath("spec", "resourceTemplates").Index(i), "add it when the application has moved")...)
		}
	}
	return errs
}

// ValidateApplication returns an error for each template that the target does not
// allow. It allows templates that the application had before. old is nil on create.
func (f AllowDefaults) ValidateApplication(app, old *v1alpha2.KubernetesApplication, target *v1alpha1.KubernetesTarget, clusterScoped ClusterScopedFunc) field.ErrorList {
	if errs := validateNewTemplates(app, old, target); len(errs) > 0 {
		return errs
	}
	validate := func(a *v1alpha2.KubernetesApplication) field.ErrorList {
		var errs field.ErrorList
		for i, t := range a.Spec.ResourceTemplates {
			path := field.NewPath("spec", "resourceTemplates").Index(i).Child("spec", "template")
			errs = append(errs, f.validateTemplate(t.Spec.Template, target, clusterScoped, path)...)
		}
		return errs
	}
	errs := validate(app)
	if len(errs) > 0 && old != nil && equality.Semantic.DeepEqual(old.Spec.TargetRef, app.Spec.TargetRef) {
		return RatchetErrors(errs, validate(old))
	}
	return errs
}

func (f AllowDefaults) validateTemplate(raw runtime.RawExtension, target *v1alpha1.KubernetesTarget, clusterScoped ClusterScopedFunc, path *field.Path) field.ErrorList {
	template, malformed := decodeTemplate(raw, path)
	if target == nil || template == nil || len(malformed) > 0 {
		return nil // the workload validation reports it
	}
	return f.validate(target, AllowItemOf(template, clusterScoped), path)
}

func (f AllowDefaults) validate(target *v1alpha1.KubernetesTarget, item AllowItem, path *field.Path) field.ErrorList {
	if target == nil {
		return nil
	}
	why := f.DeniedReason(target, item)
	if why == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("its target is %s, which %s", target.Name, why))}
}

// AllowItemsOfResources returns the items of resources, each once. It skips
// templates that cannot be read.
func AllowItemsOfResources(resources []v1alpha1.KubernetesApplicationResource, clusterScoped ClusterScopedFunc) []AllowItem {
	var out []AllowItem
	for i := range resources {
		out = appendAllowItem(out, resources[i].Spec.Template, clusterScoped)
	}
	return out
}

// AllowItemsOfApplication returns the items of the templates of an application, each
// once.
func AllowItemsOfApplication(app *v1alpha2.KubernetesApplication, clusterScoped ClusterScopedFunc) []AllowItem {
	var out []AllowItem
	for _, t := range app.Spec.ResourceTemplates {
		out = appendAllowItem(out, t.Spec.Template, clusterScoped)
	}
	return out
}

func appendAllowItem(out []AllowItem, raw runtime.RawExtension, clusterScoped ClusterScopedFunc) []AllowItem {
	template, malformed := decodeTemplate(raw, nil)
	if template == nil || len(malformed) > 0 {
		return out
	}
	item := AllowItemOf(template, clusterScoped)
	if slices.Contains(out, item) {
		return out
	}
	return append(out, item)
}

func validateAllowance(allow *v1alpha1.Allowance, path *field.Path) field.ErrorList {
	if allow == nil {
		return nil
	}
	var errs field.ErrorList
	for i, k := range allow.Kinds {
		at := path.Child("kinds").Index(i)
		if k.Kind == "" {
			errs = append(errs, field.Required(at.Child("kind"), `a kind, such as Deployment; "*" stands for all of the group`))
		}
		errs = append(errs, validateWildcard(k.Group, at.Child("group"))...)
		errs = append(errs, validateWildcard(k.Kind, at.Child("kind"))...)
	}
	for i, pattern := range allow.Namespaces {
		at := path.Child("namespaces").Index(i)
		start, open := strings.CutSuffix(pattern, "*")
		if open {
			start += "a" // "a" stands for any suffix
		}
		for _, problem := range validation.IsDNS1123Label(start) {
			errs = append(errs, field.Invalid(at, pattern, `names a namespace, or with a star at the end all that begin alike: `+problem))
		}
	}
	return errs
}

func validateWildcard(pattern string, path *field.Path) field.ErrorList {
	if strings.Contains(strings.TrimSuffix(pattern, "*"), "*") {
		return field.ErrorList{field.Invalid(path, pattern, "a star may only be at the end")}
	}
	return nil
}
