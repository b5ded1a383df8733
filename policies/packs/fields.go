package packs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fieldPath is the path of a field: keys of objects, and indexes of lists.
type fieldPath []any

// String formats a path as spec.list[0].name.
func (p fieldPath) String() string {
	var out strings.Builder
	for _, element := range p {
		switch element := element.(type) {
		case int:
			fmt.Fprintf(&out, "[%d]", element)
		case string:
			if out.Len() > 0 {
				out.WriteByte('.')
			}
			if strings.Contains(element, ".") {
				element = strconv.Quote(element)
			}
			out.WriteString(element)
		}
	}
	return out.String()
}

// configPath formats a path as the files of kustomize do: spec/list/name.
func (p fieldPath) configPath() string {
	var out []string
	for _, element := range p {
		if key, isKey := element.(string); isKey {
			out = append(out, strings.ReplaceAll(key, "/", `\/`))
		}
	}
	return strings.Join(out, "/")
}

// key returns the key that is n keys before the last one, without indexes.
func (p fieldPath) key(n int) string {
	for i := len(p) - 1; i >= 0; i-- {
		if key, isKey := p[i].(string); isKey {
			if n == 0 {
				return key
			}
			n--
		}
	}
	return ""
}

// texts calls visit for each text in a value, in the order of the paths. The keys of
// objects are texts, too.
func texts(value any, at fieldPath, visit func(at fieldPath, text string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			to := append(slices.Clone(at), key)
			visit(to, key)
			texts(value[key], to, visit)
		}
	case []any:
		for i, element := range value {
			texts(element, append(slices.Clone(at), i), visit)
		}
	case string:
		visit(at, value)
	}
}

// node returns the node at a path of a document, or nil.
func node(document *yaml.Node, at fieldPath) *yaml.Node {
	if document.Kind == yaml.DocumentNode && len(document.Content) > 0 {
		document = document.Content[0]
	}
	for _, element := range at {
		switch element := element.(type) {
		case int:
			if document.Kind != yaml.SequenceNode || element >= len(document.Content) {
				return nil
			}
			document = document.Content[element]
		case string:
			if document = value(document, element); document == nil {
				return nil
			}
		}
	}
	return document
}

// value returns the value of a key of a mapping, or nil.
func value(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// scalar returns the text at a path of a document, or "".
func scalar(document *yaml.Node, keys ...any) string {
	if found := node(document, keys); found != nil && found.Kind == yaml.ScalarNode {
		return found.Value
	}
	return ""
}

// position returns the line of a path of a document, or of the nearest parent.
func position(document *yaml.Node, at fieldPath) int {
	for end := len(at); end >= 0; end-- {
		if found := node(document, at[:end]); found != nil {
			return found.Line
		}
	}
	return document.Line
}
