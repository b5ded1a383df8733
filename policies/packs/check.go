package packs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
)

// Report is the result of a check of a pack.
type Report struct {
	// Problems prevent that instances are rendered.
	Problems Problems
	// Warnings are probably mistakes.
	Warnings Problems
	// Resources and Kinds are the numbers of resources and kinds of the example.
	Resources, Kinds int
	// Files is the number of files.
	Files int
	// Variables are the names of the variables.
	Variables []string
}

// String summarizes a pack.
func (r Report) String() string {
	variables := "no variables"
	if len(r.Variables) > 0 {
		variables = "variables " + strings.Join(r.Variables, " ")
	}
	return fmt.Sprintf("%d resources of %d kinds from %d files; %s", r.Resources, r.Kinds, r.Files, variables)
}

// Check checks a pack: it renders the example for each tier.
func Check(pack *v1alpha1.ResourcePack) Report {
	report := Report{Files: len(pack.Spec.Files)}
	s, problems := parse(pack.Spec.Files)
	report.Problems = append(problems, checkSpec(pack, s)...)
	if len(report.Problems) > 0 {
		return report
	}
	instance, err := example(pack)
	if err != nil {
		report.Problems.add(PackFile, 0, "spec.example", "%v", err)
		return report
	}
	root, problems := tier(pack, instance)
	if len(problems) > 0 {
		report.Problems = problems
		return report
	}
	loaded := map[string]bool{templateFile: true}
	for _, folder := range roots(pack, s) {
		r, problems := render(pack, s, instance, folder)
		w := s.walk(folder)
		for file := range w.loaded {
			loaded[file] = true
		}
		report.Problems = append(report.Problems, problems...)
		if len(problems) > 0 {
			continue
		}
		report.Warnings = append(report.Warnings, slices.Concat(r.oldNames(w), r.unprefixed())...)
		if folder == root {
			report.summarize(r)
		}
	}
	if len(report.Problems) == 0 {
		report.Warnings = append(report.Warnings, unused(s, loaded, report.Variables)...)
	}
	report.Problems, report.Warnings = unique(report.Problems), unique(report.Warnings)
	return report
}

// unique removes the problems that several tiers have in common.
func unique(problems Problems) Problems {
	var out Problems
	for _, problem := range problems {
		if !slices.Contains(out, problem) {
			out = append(out, problem)
		}
	}
	return out
}

func (r *Report) summarize(rendered *rendering) {
	kinds := map[schema.GroupKind]bool{}
	for _, c := range rendered.children {
		kinds[c.GroupVersionKind().GroupKind()] = true
	}
	r.Resources, r.Kinds = len(rendered.children), len(kinds)
	for _, v := range rendered.template.Vars {
		r.Variables = append(r.Variables, v.Name)
	}
}

// example returns the example of a pack. An API server gives each object a UID.
func example(pack *v1alpha1.ResourcePack) (*unstructured.Unstructured, error) {
	instance := &unstructured.Unstructured{}
	if err := instance.UnmarshalJSON(pack.Spec.Example.Raw); err != nil {
		return nil, err
	}
	if instance.GetUID() == "" {
		instance.SetUID(NoUID)
	}
	return instance, nil
}

// NoUID is the UID in the resources of an instance that does not exist yet.
const NoUID = "00000000-0000-0000-0000-000000000000"

// roots returns the folders of resources: those of the tiers, and resources.
func roots(pack *v1alpha1.ResourcePack, s *sources) []string {
	var out []string
	for _, t := range pack.Spec.Tiers {
		out = append(out, strings.TrimSuffix(t.Path, "/"))
	}
	if _, found := s.files[resourcesFolder+"/kustomization.yaml"]; found || len(out) == 0 {
		out = append(out, resourcesFolder)
	}
	return out
}

// checkSpec checks the parts of a pack that no file contains.
func checkSpec(pack *v1alpha1.ResourcePack, s *sources) Problems {
	var problems Problems
	crd := pack.Spec.CRD
	for _, message := range validation.IsDNS1123Subdomain(crd.Group) {
		problems.add(PackFile, 0, "spec.crd.group", "%s", message)
	}
	for field, value := range map[string]string{"version": crd.Version, "plural": crd.Plural, "kind": strings.ToLower(crd.Kind)} {
		for _, message := range validation.IsDNS1035Label(value) {
			problems.add(PackFile, 0, "spec.crd."+field, "%s", message)
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Field, b.Field) })
	if pack.Spec.Example == nil {
		problems.add(PackFile, 0, "spec.example", "is required: an instance, which the check renders")
	}
	for i, t := range pack.Spec.Tiers {
		field := fmt.Sprintf("spec.tiers[%d]", i)
		if _, err := compileTier(t.When); err != nil {
			problems.add(PackFile, 0, field+".when", "%v", err)
		}
		if folder := strings.TrimSuffix(t.Path, "/"); !isGoodPath(folder) || !s.isFolder(folder) {
			problems.add(PackFile, 0, field+".path", "the pack has no folder %q", t.Path)
		}
	}
	for i, overlay := range pack.Spec.Overlays {
		if !s.contains(overlay.APIVersion, overlay.Kind, overlay.Name) {
			problems.add(PackFile, 0, fmt.Sprintf("spec.overlays[%d]", i), "the pack has no %s %s, %s", overlay.Kind, overlay.Name, overlay.APIVersion)
		}
	}
	return problems
}

// unused returns a warning for each file below resources that no kustomization refers
// to, and for each variable that no file uses.
func unused(s *sources, loaded map[string]bool, variables []string) Problems {
	var warnings Problems
	var all strings.Builder
	for _, file := range slices.Sorted(maps.Keys(s.files)) {
		if loaded[file] {
			all.WriteString(s.files[file])
		} else if strings.HasPrefix(file, resourcesFolder+"/") && isYAML(file) {
			warnings.add(file, 0, "", "no kustomization refers to the file")
		}
	}
	for _, name := range variables {
		if !strings.Contains(all.String(), "$("+name+")") {
			warnings.add("", 0, name, "no file uses the variable")
		}
	}
	return warnings
}
