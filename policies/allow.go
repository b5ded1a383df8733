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

// Cargo is an object as far as being let in to a target goes.
type Cargo struct {
	Kind schema.GroupVersionKind
	// Namespace on the target; empty when the kind has none.
	Namespace string
}

// Scope tells a kind without namespaces.
type Scope func(schema.GroupVersionKind) (clusterScoped bool)

// ScopeFrom reads what a cluster says of its kinds. A kind that it does not have
// may exist on the target, which is asked before anything is sent there.
func ScopeFrom(kinds meta.RESTMapper) Scope {
	return func(kind schema.GroupVersionKind) bool {
		mapping, err := kinds.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot
	}
}

// CargoOf returns what a template sends. The namespace that a template of a kind
// without namespaces names all the same means nothing.
func CargoOf(template *unstructured.Unstructured, scope Scope) Cargo {
	kind := template.GroupVersionKind()
	if scope(kind) {
		return Cargo{Kind: kind}
	}
	return Cargo{Kind: kind, Namespace: cmp.Or(template.GetNamespace(), metav1.NamespaceDefault)}
}

// Frontier is where a target's own affairs begin, unless its spec.allow draws
// the line elsewhere: the namespaces its cluster runs from, those of a Portico
// there, and all that is above namespaces.
type Frontier struct {
	// Portico is the namespace that Portico runs in.
	Portico string
}

// kubeNamespaces is how the namespaces begin that a cluster runs from.
const kubeNamespaces = "kube-"

// Refuses says why a target does not let something in, and what would allow it;
// empty when it does. A star stands for much, but never for what is forbidden by
// default: that has to be named.
func (f Frontier) Refuses(target *v1alpha1.KubernetesTarget, cargo Cargo) string {
	allow := v1alpha1.Allowance{}
	if target.Spec.Allow != nil {
		allow = *target.Spec.Allow
	}
	kind := cargo.Kind.GroupKind()
	if !allowsKind(allow.Kinds, kind, cargo.Namespace == "") {
		return fmt.Sprintf("does not allow %s; its spec.allow.kinds would have to list {group: %q, kind: %s}", kind, kind.Group, kind.Kind)
	}
	if cargo.Namespace != "" && !f.allowsNamespace(allow.Namespaces, cargo.Namespace) {
		return fmt.Sprintf("does not allow namespace %s; its spec.allow.namespaces would have to list it", cargo.Namespace)
	}
	return ""
}

func allowsKind(kinds []metav1.GroupKind, kind schema.GroupKind, clusterScoped bool) bool {
	for _, k := range kinds {
		if covers(k.Group, kind.Group) && covers(k.Kind, kind.Kind) && (!clusterScoped || k.Kind == kind.Kind) {
			return true
		}
	}
	return len(kinds) == 0 && !clusterScoped
}

func (f Frontier) allowsNamespace(patterns []string, namespace string) bool {
	named := func(string) bool { return true }
	switch {
	case namespace == f.Portico:
		named = func(pattern string) bool { return pattern == namespace }
	case strings.HasPrefix(namespace, kubeNamespaces):
		named = func(pattern string) bool { return strings.HasPrefix(pattern, kubeNamespaces) }
	case len(patterns) == 0:
		return true
	}
	for _, pattern := range patterns {
		if covers(pattern, namespace) && named(pattern) {
			return true
		}
	}
	return false
}

// covers tells whether a name is what a pattern says; a star at its end stands
// for any rest.
func covers(pattern, name string) bool {
	if start, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}

// ValidateNative returns what keeps a native object from the target that its
// application is on; nil lets in everything, for it may be published later.
func (f Frontier) ValidateNative(object *unstructured.Unstructured, target *v1alpha1.KubernetesTarget) field.ErrorList {
	return f.validate(target, CargoOfNative(object), schedulePath)
}

// CargoOfNative returns what a native object sends: each has a namespace.
func CargoOfNative(object *unstructured.Unstructured) Cargo {
	return CargoOf(object, func(schema.GroupVersionKind) bool { return false })
}

// ValidateResource returns what keeps a resource from its target, and did not
// before. old is nil on create.
func (f Frontier) ValidateResource(resource, old *v1alpha1.KubernetesApplicationResource, target *v1alpha1.KubernetesTarget, scope Scope) field.ErrorList {
	problems := func(r *v1alpha1.KubernetesApplicationResource) field.ErrorList {
		return f.validateTemplate(r.Spec.Template, target, scope, field.NewPath("spec", "template"))
	}
	errs := problems(resource)
	if len(errs) > 0 && old != nil && equality.Semantic.DeepEqual(old.Spec.TargetRef, resource.Spec.TargetRef) {
		return Added(errs, problems(old))
	}
	return errs
}

// ValidateApplication returns which templates of an application its target does
// not let in, and were not there before. old is nil on create.
func (f Frontier) ValidateApplication(app, old *v1alpha2.KubernetesApplication, target *v1alpha1.KubernetesTarget, scope Scope) field.ErrorList {
	problems := func(a *v1alpha2.KubernetesApplication) field.ErrorList {
		var errs field.ErrorList
		for i, t := range a.Spec.ResourceTemplates {
			path := field.NewPath("spec", "resourceTemplates").Index(i).Child("spec", "template")
			errs = append(errs, f.validateTemplate(t.Spec.Template, target, scope, path)...)
		}
		return errs
	}
	errs := problems(app)
	if len(errs) > 0 && old != nil && equality.Semantic.DeepEqual(old.Spec.TargetRef, app.Spec.TargetRef) {
		return Added(errs, problems(old))
	}
	return errs
}

func (f Frontier) validateTemplate(raw runtime.RawExtension, target *v1alpha1.KubernetesTarget, scope Scope, path *field.Path) field.ErrorList {
	template, malformed := decodeTemplate(raw, path)
	if target == nil || template == nil || len(malformed) > 0 {
		return nil // judged elsewhere
	}
	return f.validate(target, CargoOf(template, scope), path)
}

func (f Frontier) validate(target *v1alpha1.KubernetesTarget, cargo Cargo, path *field.Path) field.ErrorList {
	if target == nil {
		return nil
	}
	why := f.Refuses(target, cargo)
	if why == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("its target is %s, which %s", target.Name, why))}
}

// CargoOfResources returns what resources send. What cannot be read sends
// nothing.
func CargoOfResources(resources []v1alpha1.KubernetesApplicationResource, scope Scope) []Cargo {
	var out []Cargo
	for i := range resources {
		out = appendCargo(out, resources[i].Spec.Template, scope)
	}
	return out
}

// CargoOfApplication returns what an application's templates send.
func CargoOfApplication(app *v1alpha2.KubernetesApplication, scope Scope) []Cargo {
	var out []Cargo
	for _, t := range app.Spec.ResourceTemplates {
		out = appendCargo(out, t.Spec.Template, scope)
	}
	return out
}

func appendCargo(out []Cargo, raw runtime.RawExtension, scope Scope) []Cargo {
	template, malformed := decodeTemplate(raw, nil)
	if template == nil || len(malformed) > 0 {
		return out
	}
	cargo := CargoOf(template, scope)
	if slices.Contains(out, cargo) {
		return out
	}
	return append(out, cargo)
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
		errs = append(errs, validateStar(k.Group, at.Child("group"))...)
		errs = append(errs, validateStar(k.Kind, at.Child("kind"))...)
	}
	for i, pattern := range allow.Namespaces {
		at := path.Child("namespaces").Index(i)
		start, open := strings.CutSuffix(pattern, "*")
		if open {
			start += "a" // stands for any rest
		}
		for _, problem := range validation.IsDNS1123Label(start) {
			errs = append(errs, field.Invalid(at, pattern, `names a namespace, or with a star at the end all that begin alike: `+problem))
		}
	}
	return errs
}

func validateStar(pattern string, path *field.Path) field.ErrorList {
	if strings.Contains(strings.TrimSuffix(pattern, "*"), "*") {
		return field.ErrorList{field.Invalid(path, pattern, "a star may only be at the end")}
	}
	return nil
}
