package packs

import (
	"errors"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The limits of a pack. They bound the time and the memory of a render.
const (
	maxBytes     = 1 << 20 // of all files
	maxFiles     = 512
	maxDepth     = 100      // of a document
	maxDocuments = 500      // of a file, and of a render
	maxLoads     = 512      // files and folders that one render loads
	maxExpanded  = 64 << 20 // bytes of all variables after a render
)

const (
	resourcesFolder = "resources"
	templateFile    = resourcesFolder + "/kustomization.yaml.tmpl"
)

// sources are the files of a pack, and the documents of those in YAML.
type sources struct {
	files     map[string]string
	documents map[string][]*yaml.Node
}

// goodPath matches the paths of files. It excludes URLs, absolute paths and queries.
var goodPath = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$`)

// isGoodPath tells whether a path stays in its folder, and kustomize takes it for no
// repository.
func isGoodPath(name string) bool {
	return goodPath.MatchString(name) && path.Clean(name) == name && name != ".." && !strings.HasPrefix(name, "../") && !isRemote(name)
}

// isRemote tells whether kustomize could take a path for a URL or a repository.
func isRemote(name string) bool {
	name = strings.ToLower(name)
	return strings.ContainsAny(name, ":@?") || strings.Contains(name, "//") || strings.HasPrefix(name, "github.com")
}

// parse reads the documents of all files in YAML.
func parse(files map[string]string) (*sources, Problems) {
	var problems Problems
	out := &sources{files: files, documents: map[string][]*yaml.Node{}}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		size += len(name) + len(files[name])
		switch {
		case !isGoodPath(name):
			problems.add(name, 0, "", "the path is not allowed: use a relative path of letters, digits and the characters . _ -")
		case !utf8.ValidString(files[name]):
			problems.add(name, 0, "", "the file is no text in UTF-8")
		}
	}
	switch {
	case size > maxBytes:
		problems.add("", 0, "spec.files", "the files have %d bytes, and at most %d are allowed", size, maxBytes)
	case len(files) > maxFiles:
		problems.add("", 0, "spec.files", "there are %d files, and at most %d are allowed", len(files), maxFiles)
	}
	if len(problems) > 0 {
		return out, problems
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if isYAML(name) {
			problems = append(problems, out.parseFile(name)...)
		}
	}
	return out, problems
}

// isYAML tells whether a file is in YAML, of which JSON is a part.
func isYAML(name string) bool {
	return name == templateFile || path.Base(name) == "Kustomization" || slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

func (s *sources) parseFile(name string) Problems {
	var problems Problems
	decoder := yaml.NewDecoder(strings.NewReader(s.files[name]))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return problems
		case err != nil:
			problems.add(name, yamlLine(err), "", "no YAML: %v", err)
			return problems
		case len(s.documents[name]) == maxDocuments:
			problems.add(name, document.Line, "", "the file has more than %d documents", maxDocuments)
			return problems
		}
		if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
			continue
		}
		checkNode(&document, name, 0, &problems)
		s.documents[name] = append(s.documents[name], &document)
	}
}

var lineOfError = regexp.MustCompile(`line (\d+)`)

// yamlLine returns the line in an error of the YAML parser.
func yamlLine(err error) int {
	number := 0
	if m := lineOfError.FindStringSubmatch(err.Error()); m != nil {
		for _, digit := range m[1] {
			number = number*10 + int(digit-'0')
		}
	}
	return number
}

// checkNode refuses the parts of YAML that let two parsers read different values, or
// that let a short file stand for a long one.
func checkNode(n *yaml.Node, file string, depth int, problems *Problems) {
	switch {
	case depth > maxDepth:
		problems.add(file, n.Line, "", "more than %d levels", maxDepth)
		return
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		problems.add(file, n.Line, "", "anchors and aliases are not allowed; repeat the value")
		return
	case n.Style&yaml.TaggedStyle != 0:
		problems.add(file, n.Line, "", "the tag %s is not allowed; leave it out", n.Tag)
		return
	}
	if n.Kind == yaml.MappingNode {
		keys := map[string]bool{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			switch {
			case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
				problems.add(file, key.Line, "", "the key %q is no text; quote it", key.Value)
			case keys[key.Value]:
				problems.add(file, key.Line, "", "the key %q appears twice", key.Value)
			}
			keys[key.Value] = true
		}
	}
	for _, child := range n.Content {
		checkNode(child, file, depth+1, problems)
	}
}

// isFolder tells whether a path is a folder of the pack.
func (s *sources) isFolder(name string) bool {
	for file := range s.files {
		if strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

// locate returns the line of a text in a file, in a document of a kind.
func (s *sources) locate(file, kind string, at fieldPath, text string) int {
	first := 0
	for _, document := range s.documents[file] {
		if scalar(document, "kind") != kind {
			continue
		}
		if found := node(document, at); found != nil && strings.Contains(found.Value, text) {
			return found.Line
		}
		if first == 0 {
			first = position(document, at)
		}
	}
	return first
}

// contains tells whether a file has a resource. An empty apiVersion is any version.
func (s *sources) contains(apiVersion, kind, name string) bool {
	for _, documents := range s.documents {
		for _, document := range documents {
			if scalar(document, "kind") == kind && scalar(document, "metadata", "name") == name && (apiVersion == "" || scalar(document, "apiVersion") == apiVersion) {
				return true
			}
		}
	}
	return false
}
