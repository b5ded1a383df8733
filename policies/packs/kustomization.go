package packs

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// allowedFields are the fields of a Kustomization that neither run a program nor reach
// out of the pack.
var allowedFields = []string{
	"apiVersion", "kind", "metadata", "resources", "components", "configurations", "namePrefix", "nameSuffix", "namespace",
	"commonLabels", "labels", "commonAnnotations", "patches", "images", "replicas", "replacements", "vars",
}

// refusedFields are fields with the reason, and a correction.
var refusedFields = map[string]string{
	"helmCharts":                  "it runs Helm; render the chart, and put the result into the pack",
	"helmGlobals":                 "it runs Helm; render the chart, and put the result into the pack",
	"helmChartInflationGenerator": "it runs Helm; render the chart, and put the result into the pack",
	"generators":                  "it runs plugins; write the resources",
	"transformers":                "it runs plugins; use patches or replacements",
	"validators":                  "it runs plugins",
	"openapi":                     "it changes the schema of every pack; use configurations",
	"crds":                        "use configurations",
	"configMapGenerator":          "write the ConfigMap as a resource",
	"secretGenerator":             "a pack contains no values of a Secret; refer to a Secret",
	"generatorOptions":            "write the ConfigMap as a resource",
	"bases":                       "use resources",
	"imageTags":                   "use images",
	"patchesStrategicMerge":       "use patches",
	"patchesJson6902":             "use patches",
	"sortOptions":                 "resources keep the order of the files",
	"buildMetadata":               "it is used for the positions of problems",
}

// walk follows the references of the kustomizations below a folder. It loads each file
// as often as kustomize will.
type walk struct {
	*sources
	problems Problems
	// loaded are the files that were loaded, and how often.
	loaded map[string]int
	// resources are the files with resources.
	resources map[string]bool
	loads     int
	documents int
}

func (s *sources) walk(root string) *walk {
	w := &walk{sources: s, loaded: map[string]int{}, resources: map[string]bool{}}
	w.folder(root, nil, "", 0)
	return w
}

// folder follows the kustomization of a folder. The path of references to the folder
// finds cycles.
func (w *walk) folder(name string, parents []string, from string, number int) {
	if slices.ContainsFunc(parents, func(parent string) bool { return parent == name || strings.HasPrefix(parent, name+"/") }) {
		w.problems.add(from, number, "", "%s refers to a folder that refers to it: %s", name, strings.Join(append(parents, name), " → "))
		return
	}
	if !w.count(name, from, number) {
		return
	}
	var found []string
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		if file := path.Join(name, base); w.files[file] != "" {
			found = append(found, file)
		}
	}
	if len(found) != 1 {
		w.problems.add(name, 0, "", "the folder has %d kustomizations, and needs one: kustomization.yaml", len(found))
		return
	}
	w.loaded[found[0]]++
	k, document, ok := w.kustomization(found[0])
	if !ok {
		return
	}
	for _, r := range references(k) {
		w.follow(r, found[0], position(document, r.at), append(slices.Clone(parents), name))
	}
	if w.documents > maxDocuments {
		w.problems.add(found[0], 0, "", "the pack has more than %d resources", maxDocuments)
	}
}

// count counts a load, and tells whether it is within the limit.
func (w *walk) count(name, from string, number int) bool {
	if w.loads++; w.loads > maxLoads {
		if w.loads == maxLoads+1 {
			w.problems.add(from, number, "", "%s: the pack loads more than %d files and folders", name, maxLoads)
		}
		return false
	}
	return true
}

// kustomization decodes a file as kustomize does, and checks its fields.
func (w *walk) kustomization(file string) (types.Kustomization, *yaml.Node, bool) {
	k, document, problems := w.decode(file)
	w.problems = append(w.problems, problems...)
	return k, document, len(problems) == 0
}

func (s *sources) decode(file string) (types.Kustomization, *yaml.Node, Problems) {
	var problems Problems
	var k types.Kustomization
	if len(s.documents[file]) != 1 {
		problems.add(file, 0, "", "the file has %d documents, and needs one", len(s.documents[file]))
		return k, nil, problems
	}
	document := s.documents[file][0]
	fields := document.Content[0]
	if fields.Kind != yaml.MappingNode {
		problems.add(file, fields.Line, "", "the file is no Kustomization")
		return k, nil, problems
	}
	for i := 0; i < len(fields.Content); i += 2 {
		name := fields.Content[i].Value
		switch reason, known := refusedFields[name]; {
		case known:
			problems.add(file, fields.Content[i].Line, name, "the field is not allowed: %s", reason)
		case !slices.Contains(allowedFields, name):
			problems.add(file, fields.Content[i].Line, name, "the field is not allowed; the allowed fields are %s", strings.Join(allowedFields, ", "))
		}
	}
	if len(problems) > 0 {
		return k, nil, problems
	}
	if err := k.Unmarshal([]byte(s.files[file])); err != nil {
		problems.add(file, fields.Line, "", "%v", err)
	}
	return k, document, problems
}

// reference is a reference of a Kustomization to a file or a folder.
type reference struct {
	path string
	at   fieldPath
	// isResource tells whether a file at the path contains resources.
	isResource bool
	// file and folder tell whether the path may be one.
	file, folder bool
}

// references returns the references of a Kustomization.
func references(k types.Kustomization) []reference {
	var out []reference
	for i, name := range k.Resources {
		out = append(out, reference{path: name, at: fieldPath{"resources", i}, isResource: true, file: true, folder: true})
	}
	for i, name := range k.Components {
		out = append(out, reference{path: name, at: fieldPath{"components", i}, folder: true})
	}
	for i, name := range k.Configurations {
		out = append(out, reference{path: name, at: fieldPath{"configurations", i}, file: true})
	}
	for i, patch := range k.Patches {
		if patch.Path != "" {
			out = append(out, reference{path: patch.Path, at: fieldPath{"patches", i, "path"}, file: true})
		}
	}
	for i, replacement := range k.Replacements {
		if replacement.Path != "" {
			out = append(out, reference{path: replacement.Path, at: fieldPath{"replacements", i, "path"}, file: true})
		}
	}
	return out
}

// follow loads the file or the folder of a reference in a file.
func (w *walk) follow(r reference, file string, number int, parents []string) {
	to, ok := w.resolve(r.path, file, number, r.at)
	if !ok || !w.count(to, file, number) {
		return
	}
	_, isFile := w.files[to]
	switch {
	case isFile && r.file && !isYAML(to):
		w.problems.add(file, number, r.at.String(), "%s has no extension of YAML", to)
	case isFile && r.file:
		w.loaded[to]++
		if r.isResource {
			w.resources[to] = true
			w.documents += len(w.sources.documents[to])
		}
	case r.folder && w.isFolder(to):
		w.folder(to, parents, file, number)
	default:
		w.problems.add(file, number, r.at.String(), "the pack has no %s", to)
	}
}

// resolve returns the path in the pack of a reference in a file.
func (w *walk) resolve(reference, file string, number int, at fieldPath) (string, bool) {
	clean := strings.TrimSuffix(reference, "/")
	to := path.Join(path.Dir(file), clean)
	switch {
	case isRemote(reference):
		w.problems.add(file, number, at.String(), "%q is remote; a pack contains all of its files", reference)
		return "", false
	case !goodPath.MatchString(clean) || !isGoodPath(to):
		w.problems.add(file, number, at.String(), "%q leaves the pack, or is no path", reference)
		return "", false
	}
	return to, true
}
