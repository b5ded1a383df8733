package packs

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyamlutils "sigs.k8s.io/kustomize/kyaml/utils"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
)

// Option is an option of Render.
type Option func(*rendering)

// WithKustomizationPatchers adds patchers after the built-in ones.
func WithKustomizationPatchers(patchers ...KustomizationPatcher) Option {
	return func(r *rendering) { r.kustomizationPatchers = append(r.kustomizationPatchers, patchers...) }
}

// WithChildResourcePatchers adds patchers after the built-in ones.
func WithChildResourcePatchers(patchers ...ChildResourcePatcher) Option {
	return func(r *rendering) { r.childResourcePatchers = append(r.childResourcePatchers, patchers...) }
}

// rendering is the state of one render.
type rendering struct {
	pack     *v1alpha1.ResourcePack
	instance *unstructured.Unstructured
	// input is the instance as kustomize reads it.
	input    *unstructured.Unstructured
	sources  *sources
	root     string
	template types.Kustomization
	children []child

	kustomizationPatchers []KustomizationPatcher
	childResourcePatchers []ChildResourcePatcher
}

// Render returns the resources of an instance, in the order of the files. The error is
// Problems if the pack or the instance has mistakes.
func Render(pack *v1alpha1.ResourcePack, instance *unstructured.Unstructured, options ...Option) ([]*unstructured.Unstructured, error) {
	s, problems := parse(pack.Spec.Files)
	if len(problems) > 0 {
		return nil, problems
	}
	root, problems := tier(pack, instance)
	if len(problems) > 0 {
		return nil, problems
	}
	r, problems := render(pack, s, instance, root, options...)
	if len(problems) > 0 {
		return nil, problems
	}
	return r.objects(), nil
}

func render(pack *v1alpha1.ResourcePack, s *sources, instance *unstructured.Unstructured, root string, options ...Option) (*rendering, Problems) {
	r := &rendering{
		pack: pack, sources: s, instance: instance, root: root,
		kustomizationPatchers: slices.Clone(builtInKustomizationPatchers),
		childResourcePatchers: slices.Clone(builtInChildResourcePatchers),
	}
	for _, option := range options {
		option(r)
	}
	for _, step := range []func() Problems{
		r.validateInstance, r.readTemplate, r.patchTemplate, r.checkSources, r.checkVars, r.kustomize, r.removeInstance, r.patchChildren, r.checkChildren,
	} {
		if problems := step(); len(problems) > 0 {
			return r, problems
		}
	}
	return r, nil
}

func (r *rendering) objects() []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(r.children))
	for _, c := range r.children {
		out = append(out, c.Unstructured)
	}
	return out
}

// instanceKind returns the kind of the instances of a pack.
func instanceKind(pack *v1alpha1.ResourcePack) schema.GroupVersionKind {
	crd := pack.Spec.CRD
	return schema.GroupVersionKind{Group: crd.Group, Version: crd.Version, Kind: crd.Kind}
}

// validateInstance checks the parts of an instance that the names, the labels and the
// owner references of its resources contain.
func (r *rendering) validateInstance() Problems {
	var problems Problems
	in := r.instance
	if gvk := instanceKind(r.pack); in.GroupVersionKind() != gvk {
		problems.add("", 0, "kind", "must be %s, %s, not %s, %s", gvk.Kind, gvk.GroupVersion(), in.GetKind(), in.GetAPIVersion())
		return problems
	}
	name := in.GetName()
	for _, message := range append(validation.IsDNS1123Subdomain(name), validation.IsValidLabelValue(name)...) {
		problems.add("", 0, "metadata.name", "%s", message)
	}
	if namespaced := r.pack.Spec.CRD.Scope == apiextensionsv1.NamespaceScoped; namespaced != (in.GetNamespace() != "") {
		if namespaced {
			problems.add("", 0, "metadata.namespace", "is required: the scope of %s is Namespaced", in.GetKind())
		} else {
			problems.add("", 0, "metadata.namespace", "must be empty: the scope of %s is Cluster", in.GetKind())
		}
	}
	texts(in.Object["spec"], fieldPath{"spec"}, func(at fieldPath, text string) {
		if strings.Contains(text, "$(") {
			problems.add("", 0, at.String(), "must not contain \"$(\"")
		}
	})
	r.input = toInput(in)
	return problems
}

// toInput returns the fields of an instance that a pack may refer to, without the
// annotations that kustomize obeys.
func toInput(instance *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(instance.GroupVersionKind())
	out.SetName(instance.GetName())
	out.SetNamespace(instance.GetNamespace())
	out.SetUID(instance.GetUID())
	out.SetLabels(instance.GetLabels())
	annotations := instance.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		prefix, _, _ := strings.Cut(key, "/")
		return strings.HasSuffix(prefix, "config.kubernetes.io") || strings.HasSuffix(prefix, "config.k8s.io")
	})
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	if spec, found := instance.Object["spec"]; found {
		out.Object["spec"] = spec
	}
	return out.DeepCopy()
}

// readTemplate makes the Kustomization of the instance from the template, the variables
// and the overlays of the pack.
func (r *rendering) readTemplate() Problems {
	var problems Problems
	var k types.Kustomization
	if _, found := r.sources.files[templateFile]; found {
		if k, _, problems = r.sources.decode(templateFile); len(problems) > 0 {
			return problems
		}
	}
	k.Resources = []string{path.Join("..", packFolder, r.root), instanceFile}
	gvk := instanceKind(r.pack)
	for i, variable := range r.pack.Spec.Variables {
		if slices.ContainsFunc(k.Vars, func(v types.Var) bool { return v.Name == variable.Name }) {
			problems.add(PackFile, 0, fmt.Sprintf("spec.variables[%d].name", i), "%s is defined twice", variable.Name)
			continue
		}
		k.Vars = append(k.Vars, types.Var{
			Name:     variable.Name,
			ObjRef:   types.Target{APIVersion: gvk.GroupVersion().String(), Gvk: resid.Gvk{Kind: gvk.Kind}},
			FieldRef: types.FieldSelector{FieldPath: variable.FieldPath},
		})
	}
	k.Replacements = append(k.Replacements, r.overlays()...)
	r.template = k
	return problems
}

// overlays returns the overlays of a pack as replacements of kustomize.
func (r *rendering) overlays() []types.ReplacementField {
	var out []types.ReplacementField
	gvk := instanceKind(r.pack)
	source := resid.NewResIdWithNamespace(resid.NewGvk(gvk.Group, gvk.Version, gvk.Kind), r.instance.GetName(), r.instance.GetNamespace())
	for _, overlay := range r.pack.Spec.Overlays {
		to := schema.FromAPIVersionAndKind(overlay.APIVersion, overlay.Kind)
		for _, binding := range overlay.Bindings {
			if _, found := lookup(r.instance.Object, binding.From); !found {
				continue
			}
			out = append(out, types.ReplacementField{Replacement: types.Replacement{
				Source: &types.SourceSelector{ResId: source, FieldPath: binding.From},
				Targets: []*types.TargetSelector{{
					Select:     &types.Selector{ResId: resid.NewResId(resid.NewGvk(to.Group, to.Version, to.Kind), regexp.QuoteMeta(overlay.Name))},
					FieldPaths: []string{binding.To},
					Options:    &types.FieldOptions{Create: true},
				}},
			}})
		}
	}
	return out
}

// lookup returns the value of a field of an object, and false if it is absent or empty.
func lookup(object map[string]any, path string) (any, bool) {
	var value any = object
	for _, key := range kyamlutils.SmarterPathSplitter(strings.NewReplacer("[", ".", "]", "").Replace(path), ".") {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(parent) {
				return nil, false
			}
			value = parent[i]
		default:
			return nil, false
		}
	}
	return value, value != nil && value != ""
}

// patchTemplate calls the patchers of the Kustomization, and checks their result as
// strictly as a file.
func (r *rendering) patchTemplate() Problems {
	var problems Problems
	for _, patcher := range r.kustomizationPatchers {
		if err := patcher.PatchKustomization(r.instance, &r.template); err != nil {
			problems.add(templateFile, 0, "", "%v", err)
			return problems
		}
	}
	k := r.template
	k.Resources = nil
	content, err := json.Marshal(k)
	if err != nil {
		problems.add(templateFile, 0, "", "%v", err)
		return problems
	}
	s, problems := parse(map[string]string{templateFile: string(content)})
	if len(problems) > 0 {
		return problems
	}
	if _, _, problems = s.decode(templateFile); len(problems) > 0 {
		return problems
	}
	refuse := func(field string) {
		problems.add(templateFile, 0, field, "files are not allowed in the template; refer to them in %s/%s", resourcesFolder, "kustomization.yaml")
	}
	for field, names := range map[string][]string{"components": k.Components, "configurations": k.Configurations} {
		if len(names) > 0 {
			refuse(field)
		}
	}
	if slices.ContainsFunc(k.Patches, func(p types.Patch) bool { return p.Path != "" }) {
		refuse("patches")
	}
	if slices.ContainsFunc(k.Replacements, func(p types.ReplacementField) bool { return p.Path != "" }) {
		refuse("replacements")
	}
	return problems
}

// checkSources follows the references of the files before kustomize does.
func (r *rendering) checkSources() Problems {
	w := r.sources.walk(r.root)
	problems := w.problems
	gvk := instanceKind(r.pack)
	expressions, longest := 0, longestText(r.input.Object)
	for _, file := range slices.Sorted(maps.Keys(w.loaded)) {
		expressions += strings.Count(r.sources.files[file], "$(") * w.loaded[file]
		for _, document := range r.sources.documents[file] {
			longest = max(longest, longestScalar(document))
			if w.resources[file] {
				checkDocument(file, document, gvk, &problems)
			}
		}
	}
	if expressions*longest > maxExpanded {
		problems.add("", 0, "spec.files", "%d uses of variables with values of up to %d bytes are too many", expressions, longest)
	}
	return problems
}

// checkDocument checks a resource in a file.
func checkDocument(file string, document *yaml.Node, instance schema.GroupVersionKind, problems *Problems) {
	kind, apiVersion := scalar(document, "kind"), scalar(document, "apiVersion")
	switch {
	case kind == "" || apiVersion == "":
		problems.add(file, position(document, nil), "", "the document is no resource: it needs apiVersion and kind")
	case strings.HasSuffix(kind, "List") && node(document, fieldPath{"items"}) != nil:
	case scalar(document, "metadata", "name") == "":
		problems.add(file, position(document, fieldPath{"metadata"}), "metadata.name", "is required")
	case schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind() == instance.GroupKind():
		problems.add(file, position(document, fieldPath{"kind"}), "kind", "a pack cannot contain an instance of itself")
	}
}

// checkVars checks that each variable resolves to a value.
func (r *rendering) checkVars() Problems {
	var problems Problems
	for _, v := range r.template.Vars {
		file, number, field := r.variablePosition(v.Name)
		if !refersTo(v, r.instance) {
			if !r.sources.contains("", v.ObjRef.Kind, v.ObjRef.Name) {
				problems.add(file, number, field, "the variable resolves to nothing: no file has a %s %s", v.ObjRef.Kind, v.ObjRef.Name)
			}
			continue
		}
		from := v.FieldRef.FieldPath
		if from == "" {
			from = types.DefaultReplacementFieldPath
		}
		switch value, found := lookup(r.input.Object, from); value.(type) {
		case map[string]any, []any:
			problems.add(file, number, field, "%s is no single value", from)
		default:
			if !found {
				problems.add(file, number, field, "the variable resolves to nothing: the instance has no %s", from)
			}
		}
	}
	return problems
}

// variablePosition returns the position of a variable in the template or in the pack.
func (r *rendering) variablePosition(name string) (file string, number int, field string) {
	for i, variable := range r.pack.Spec.Variables {
		if variable.Name == name {
			return PackFile, 0, fmt.Sprintf("spec.variables[%d] (%s)", i, name)
		}
	}
	for _, document := range r.sources.documents[templateFile] {
		if vars := node(document, fieldPath{"vars"}); vars != nil {
			for i, v := range vars.Content {
				if scalar(v, "name") == name {
					return templateFile, v.Line, fmt.Sprintf("vars[%d] (%s)", i, name)
				}
			}
		}
	}
	return "", 0, name
}

// kustomize runs kustomize.
func (r *rendering) kustomize() Problems {
	var problems Problems
	var err error
	if r.children, err = runKustomize(r.sources.files, r.template, r.input); err != nil {
		message := strings.NewReplacer(".."+packFolder+"/", "", packFolder+"/", "").Replace(err.Error())
		problems.add("", 0, "", "kustomize: %s", message)
	}
	return problems
}

// removeInstance removes the instance from the result of kustomize. No file has its kind.
func (r *rendering) removeInstance() Problems {
	var problems Problems
	before := len(r.children)
	gk := r.instance.GroupVersionKind().GroupKind()
	r.children = slices.DeleteFunc(r.children, func(c child) bool { return c.GroupVersionKind().GroupKind() == gk })
	if before-len(r.children) != 1 {
		problems.add("", 0, "", "the result of kustomize has %d instances; the pack must not change them", before-len(r.children))
	}
	return problems
}

// patchChildren calls the patchers of the resources.
func (r *rendering) patchChildren() Problems {
	var problems Problems
	for _, patcher := range r.childResourcePatchers {
		if err := patcher.PatchChildResources(r.instance, r.objects()); err != nil {
			problems.add("", 0, "", "%v", err)
			return problems
		}
	}
	return problems
}
