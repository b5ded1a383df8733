package main

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// Every field of an object on a target that is not the user's is marked, with who
// set it. Who that is follows from the object's managed fields: what Portico
// applied is the user's, but for Portico's own marks; what nobody set has the
// default of its kind.

const (
	byPortico   = "set by Portico"
	byAPIServer = "set by the API server"
	byDefault   = "defaulted"
)

// holding is how much one manager owns of a part of an object.
type holding struct {
	manager string
	// whole says that it owns all of the part; otherwise set says what.
	whole bool
	set   *fieldpath.Set
}

// holdings reads who owns what. What cannot be read is nobody's.
func holdings(owners []v1alpha1.FieldOwner) []holding {
	var out []holding
	for _, owner := range owners {
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(owner.Fields.Raw)); err == nil {
			out = append(out, holding{manager: owner.Manager, set: set})
		}
	}
	return out
}

// descend says how much each owns of what an element leads to.
func descend(all []holding, element *fieldpath.PathElement) []holding {
	var out []holding
	for _, h := range all {
		if h.whole {
			out = append(out, h)
			continue
		}
		if element == nil || h.set == nil {
			continue
		}
		child, more := h.set.Children.Get(*element)
		member := h.set.Members.Has(*element)
		if more || member {
			out = append(out, holding{manager: h.manager, set: child, whole: member && !more})
		}
	}
	return out
}

// mark says whose a field is; "" is the user's.
func mark(all []holding) string {
	var names []string
	for _, h := range all {
		switch {
		case !h.whole:
		case h.manager == v1alpha1.PropagationManager:
			return ""
		default:
			names = append(names, h.manager)
		}
	}
	if len(names) == 0 {
		return byDefault
	}
	return "set by " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// identity are fields that managed fields say nothing of.
var identity = map[string]string{
	".apiVersion": "", ".kind": "", ".metadata.name": "", ".metadata.namespace": "",
	".metadata.uid": byAPIServer, ".metadata.resourceVersion": byAPIServer, ".metadata.generation": byAPIServer,
	".metadata.creationTimestamp": byAPIServer, ".metadata.deletionTimestamp": byAPIServer, ".metadata.deletionGracePeriodSeconds": byAPIServer,
}

// marked writes an object as YAML, in the order and form of kubectl, with a mark
// at every field that is not the user's.
func marked(object *unstructured.Unstructured, owners []v1alpha1.FieldOwner) ([]byte, error) {
	node, err := write(object.Object, "", holdings(owners))
	if err != nil {
		return nil, err
	}
	return encode(node)
}

// unmarked writes an object as YAML.
func unmarked(object *unstructured.Unstructured) ([]byte, error) {
	node, err := write(object.Object, unmarkedPath, nil)
	if err != nil {
		return nil, err
	}
	return encode(node)
}

// unmarkedPath begins the paths of what is not marked.
const unmarkedPath = "-"

func encode(node *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(node); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

func write(v any, path string, owned []holding) (*yaml.Node, error) {
	switch of := v.(type) {
	case map[string]any:
		if len(of) > 0 {
			return writeMap(of, path, owned)
		}
	case []any:
		if len(of) > 0 {
			return writeList(of, path, owned)
		}
	}
	node := &yaml.Node{}
	if err := node.Encode(v); err != nil {
		return nil, err
	}
	if text := markAt(path, owned); text != "" {
		node.LineComment = "# " + text
	}
	return node, nil
}

func markAt(path string, owned []holding) string {
	if strings.HasPrefix(path, unmarkedPath) {
		return ""
	}
	if text, known := identity[path]; known {
		return text
	}
	if ofPortico(path) {
		return byPortico
	}
	return printable(mark(owned))
}

// ofPortico tells Portico's own labels and annotations.
func ofPortico(path string) bool {
	for _, parent := range []string{".metadata.labels.", ".metadata.annotations."} {
		if _, key, ok := strings.Cut(path, parent); ok {
			domain, _, _ := strings.Cut(key, "/")
			return domain == v1alpha1.Group || strings.HasSuffix(domain, "."+v1alpha1.Group)
		}
	}
	return false
}

// printable keeps a comment a comment, whatever a manager calls itself.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return '?'
		}
		return r
	}, text)
}

func writeMap(fields map[string]any, path string, owned []holding) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, err := write(key, unmarkedPath, nil)
		if err != nil {
			return nil, err
		}
		element := fieldpath.FieldNameElement(key)
		field, err := write(fields[key], path+"."+key, descend(owned, &element))
		if err != nil {
			return nil, err
		}
		if field.Style == yaml.LiteralStyle { // its comment would be part of it
			name.HeadComment, field.LineComment = field.LineComment, ""
		}
		out.Content = append(out.Content, name, field)
	}
	return out, nil
}

func writeList(items []any, path string, owned []holding) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.SequenceNode}
	for i, item := range items {
		node, err := write(item, path+"[]", descend(owned, elementOf(item, i, owned)))
		if err != nil {
			return nil, err
		}
		if node.Style == yaml.LiteralStyle {
			node.HeadComment, node.LineComment = node.LineComment, ""
		}
		out.Content = append(out.Content, node)
	}
	return out, nil
}

// elementOf finds how managed fields name an item of a list: by its key, by its
// value, or by its place. It is nil when they do not.
func elementOf(item any, place int, owned []holding) *fieldpath.PathElement {
	var out *fieldpath.PathElement
	for _, h := range owned {
		if h.set == nil {
			continue
		}
		h.set.Iterate(func(path fieldpath.Path) { // to the end: it cannot be left before
			if element := path[0]; out == nil && names(element, item, place) {
				out = &element
			}
		})
	}
	return out
}

func names(element fieldpath.PathElement, item any, place int) bool {
	switch {
	case element.Key != nil:
		fields, ok := item.(map[string]any)
		for _, key := range *element.Key {
			field, has := fields[key.Name]
			ok = ok && has && value.Equals(key.Value, value.NewValueInterface(field))
		}
		return ok
	case element.Value != nil:
		return value.Equals(*element.Value, value.NewValueInterface(item))
	case element.Index != nil:
		return *element.Index == place
	}
	return false
}
