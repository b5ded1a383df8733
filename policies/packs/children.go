package packs

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/kustomize/api/types"
)

// checkChildren checks the rendered resources: each variable is replaced, and each name
// is one that the API server accepts.
func (r *rendering) checkChildren() Problems {
	var problems Problems
	for _, c := range r.children {
		name := fieldPath{"metadata", "name"}
		for _, message := range nameErrors(c) {
			problems.add(c.file, r.sources.locate(c.file, c.GetKind(), name, ""), name.String(), "%s %s: %s", c.GetKind(), c.GetName(), message)
		}
		texts(c.Object, nil, func(at fieldPath, text string) {
			if variable, found := unresolved(text); found && !isContainerVariable(c.Object, at, variable) {
				problems.add(c.file, r.sources.locate(c.file, c.GetKind(), at, "$("), at.String(), "%s", r.unresolvedMessage(c, at, text, variable))
			}
		})
	}
	return problems
}

// nameErrors returns the reasons why a name with its prefix is not accepted.
func nameErrors(c child) []string {
	switch {
	case c.GetKind() == "Service" && c.GroupVersionKind().Group == "", c.GetKind() == "Namespace" && c.GroupVersionKind().Group == "":
		return validation.IsDNS1123Label(c.GetName())
	case c.GroupVersionKind().Group == "rbac.authorization.k8s.io": // its names may contain other characters
		if len(c.GetName()) > validation.DNS1123SubdomainMaxLength {
			return []string{validation.MaxLenError(validation.DNS1123SubdomainMaxLength)}
		}
		return nil
	}
	return validation.IsDNS1123Subdomain(c.GetName())
}

// variableUse matches the use of a variable. After a second $ it is a text.
var variableUse = regexp.MustCompile(`(?:^|[^$])(?:\$\$)*\$\(([^)]*)`)

// unresolved returns the name of the first variable in a text.
func unresolved(text string) (string, bool) {
	if m := variableUse.FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	return "", false
}

func (r *rendering) unresolvedMessage(c child, at fieldPath, text, variable string) string {
	if slices.ContainsFunc(r.template.Vars, func(v types.Var) bool { return v.Name == variable }) {
		return "the variable in " + quote(text) + " is not replaced: add a varReference with path " + at.configPath() + " and kind " + c.GetKind() + " to kustomizeconfig.yaml"
	}
	return "no variable of " + quote(text) + " has the name " + quote(variable)
}

func quote(text string) string {
	const most = 60
	if len(text) > most {
		text = text[:most] + "..."
	}
	return `"` + text + `"`
}

// isContainerVariable tells whether Kubernetes itself replaces a variable: in the
// command, the arguments and the environment of a container that has such a variable.
func isContainerVariable(object map[string]any, at fieldPath, name string) bool {
	for i := 0; i+2 < len(at); i++ {
		list, _ := at[i].(string)
		index, isIndex := at[i+1].(int)
		part, _ := at[i+2].(string)
		if !isIndex || !slices.Contains([]string{"containers", "initContainers", "ephemeralContainers"}, list) ||
			!slices.Contains([]string{"command", "args", "env"}, part) {
			continue
		}
		container, _ := get(object, append(slices.Clone(at[:i+1]), index)).(map[string]any)
		if container["envFrom"] != nil {
			return true
		}
		variables, _ := container["env"].([]any)
		return slices.ContainsFunc(variables, func(v any) bool {
			variable, _ := v.(map[string]any)
			return variable["name"] == name
		})
	}
	return false
}

// get returns the value at a path, or nil.
func get(value any, at fieldPath) any {
	for _, element := range at {
		switch parent := value.(type) {
		case map[string]any:
			key, _ := element.(string)
			value = parent[key]
		case []any:
			i, isIndex := element.(int)
			if !isIndex || i >= len(parent) {
				return nil
			}
			value = parent[i]
		default:
			return nil
		}
	}
	return value
}

// oldNames returns a warning for each field that names a resource of the pack without
// its prefix. Such a field needs a nameReference.
func (r *rendering) oldNames(w *walk) Problems {
	var warnings Problems
	old := map[string]string{} // the kind by the name in the files
	for file := range w.resources {
		for _, document := range r.sources.documents[file] {
			old[scalar(document, "metadata", "name")] = scalar(document, "kind")
		}
	}
	for _, c := range r.children {
		delete(old, c.GetName())
	}
	delete(old, "")
	for _, c := range r.children {
		texts(c.Object, nil, func(at fieldPath, text string) {
			if kind := old[text]; kind != "" && isReference(c.Object, at) {
				warnings.add(c.file, r.sources.locate(c.file, c.GetKind(), at, text), at.String(),
					"%q is the name of a %s before it gets a prefix: add a nameReference for the kind %s with path %s and kind %s to kustomizeconfig.yaml",
					text, kind, kind, at.configPath(), c.GetKind())
			}
		})
	}
	return warnings
}

// isReference tells whether a field may name another object: its key is name, or ends
// in Name, Ref or Reference. Labels, selectors and the names of the parts of a Pod do not.
func isReference(object map[string]any, at fieldPath) bool {
	if _, isKey := get(object, at).(string); !isKey || at[0] == "metadata" {
		return false
	}
	for n := range at {
		switch at.key(n) {
		case "labels", "annotations", "matchLabels", "selector", "ports", "env", "volumeMounts":
			return false
		}
	}
	key, parent := at.key(0), at.key(1)
	if _, inList := at[max(len(at)-2, 0)].(int); key == "name" && inList && slices.Contains([]string{"containers", "initContainers", "volumes"}, parent) {
		return false
	}
	ends := func(key string, suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(key, suffix) })
	}
	return key == "name" || ends(key, "Name", "Names", "Ref", "Refs", "Reference", "References")
}

// unprefixed returns a warning for each resource whose name is the same for each instance.
func (r *rendering) unprefixed() Problems {
	var warnings Problems
	name := fieldPath{"metadata", "name"}
	for _, c := range r.children {
		if !strings.Contains(c.GetName(), r.instance.GetName()) {
			warnings.add(c.file, r.sources.locate(c.file, c.GetKind(), name, c.GetName()), name.String(),
				"%s %s has no prefix, so that two instances have the same object; use a variable in the name", c.GetKind(), c.GetName())
		}
	}
	return warnings
}

// longestText returns the length of the longest text in a value.
func longestText(value any) int {
	longest := 0
	texts(value, nil, func(_ fieldPath, text string) { longest = max(longest, len(text)) })
	return longest
}

// longestScalar returns the length of the longest text in a document.
func longestScalar(document *yaml.Node) int {
	longest := len(document.Value)
	for _, c := range document.Content {
		longest = max(longest, longestScalar(c))
	}
	return longest
}
