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

// Every field of an object on a target that the user did not set gets a comment
// with its owner. The managed fields of the object name the owner. Fields that
// Portico applied are the user's, except for Portico's own labels and
// annotations. Fields without an owner have the default of the kind.

const (
	byPortico   = "set by Portico"
	byAPIServer = "set by the API server"
	byDefault   = "defaulted"
)

// managerFields holds the fields of a part of an object that one manager owns.
type managerFields struct {
	manager string
	// whole tells that the manager owns the whole part; otherwise set holds
	// its fields.
	whole bool
	set   *fieldpath.Set
}

// managerFieldsOf decodes the owners of fields. It skips entries that it cannot
// decode.
func managerFieldsOf(owners []v1alpha1.FieldOwner) []managerFields {
	var out []managerFields
	for _, owner := range owners {
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(owner.Fields.Raw)); err == nil {
			out = append(out, managerFields{manager: owner.Manager, set: set})
		}
	}
	return out
}

// childFields returns the fields of each manager below an element.
func childFields(all []managerFields, element *fieldpath.PathElement) []managerFields {
	var out []managerFields
	for _, m := range all {
		if m.whole {
			out = append(out, m)
			continue
		}
		if element == nil || m.set == nil {
			continue
		}
		child, more := m.set.Children.Get(*element)
		member := m.set.Members.Has(*element)
		if more || member {
			out = append(out, managerFields{manager: m.manager, set: child, whole: member && !more})
		}
	}
	return out
}

// ownerComment names the owner of a field; "" is the user.
func ownerComment(all []managerFields) string {
	var names []string
	for _, m := range all {
		switch {
		case !m.whole:
		case m.manager == v1alpha1.PropagationManager:
			return ""
		default:
			names = append(names, m.manager)
		}
	}
	if len(names) == 0 {
		return byDefault
	}
	return "set by " + strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// identityComments are the comments on fields that managed fields do not contain.
var identityComments = map[string]string{
	".apiVersion": "", ".kind": "", ".metadata.name": "", ".metadata.namespace": "",
	".metadata.uid": byAPIServer, ".metadata.resourceVersion": byAPIServer, ".metadata.generation": byAPIServer,
	".metadata.creationTimestamp": byAPIServer, ".metadata.deletionTimestamp": byAPIServer, ".metadata.deletionGracePeriodSeconds": byAPIServer,
}

// commentedYAML formats an object as YAML, as kubectl does, with a comment on
// every field that the user did not set.
func commentedYAML(object *unstructured.Unstructured, owners []v1alpha1.FieldOwner) ([]byte, error) {
	node, err := yamlNode(object.Object, "", managerFieldsOf(owners))
	if err != nil {
		return nil, err
	}
	return encode(node)
}

// plainYAML formats an object as YAML without comments.
func plainYAML(object *unstructured.Unstructured) ([]byte, error) {
	node, err := yamlNode(object.Object, plainPath, nil)
	if err != nil {
		return nil, err
	}
	return encode(node)
}

// plainPath begins the paths of fields that get no comment.
const plainPath = "-"

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

func yamlNode(v any, path string, owned []managerFields) (*yaml.Node, error) {
	switch of := v.(type) {
	case map[string]any:
		if len(of) > 0 {
			return mapNode(of, path, owned)
		}
	case []any:
		if len(of) > 0 {
			return listNode(of, path, owned)
		}
	}
	node := &yaml.Node{}
	if err := node.Encode(v); err != nil {
		return nil, err
	}
	if text := commentAt(path, owned); text != "" {
		node.LineComment = "# " + text
	}
	return node, nil
}

func commentAt(path string, owned []managerFields) string {
	if strings.HasPrefix(path, plainPath) {
		return ""
	}
	if text, known := identityComments[path]; known {
		return text
	}
	if isPorticoKey(path) {
		return byPortico
	}
	return printable(ownerComment(owned))
}

// isPorticoKey tells whether a path is a label or an annotation of Portico.
func isPorticoKey(path string) bool {
	for _, parent := range []string{".metadata.labels.", ".metadata.annotations."} {
		if _, key, ok := strings.Cut(path, parent); ok {
			domain, _, _ := strings.Cut(key, "/")
			return domain == v1alpha1.Group || strings.HasSuffix(domain, "."+v1alpha1.Group)
		}
	}
	return false
}

// printable replaces characters in the name of a manager that would end a
// comment.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return '?'
		}
		return r
	}, text)
}

func mapNode(fields map[string]any, path string, owned []managerFields) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, err := yamlNode(key, plainPath, nil)
		if err != nil {
			return nil, err
		}
		element := fieldpath.FieldNameElement(key)
		field, err := yamlNode(fields[key], path+"."+key, childFields(owned, &element))
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

func listNode(items []any, path string, owned []managerFields) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.SequenceNode}
	for i, item := range items {
		node, err := yamlNode(item, path+"[]", childFields(owned, elementOf(item, i, owned)))
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

// elementOf returns the path element of a list item in managed fields: its key,
// its value, or its index. It returns nil when managed fields do not contain the
// item.
func elementOf(item any, index int, owned []managerFields) *fieldpath.PathElement {
	var out *fieldpath.PathElement
	for _, m := range owned {
		if m.set == nil {
			continue
		}
		m.set.Iterate(func(path fieldpath.Path) { // to the end: it cannot be left before
			if element := path[0]; out == nil && matchesElement(element, item, index) {
				out = &element
			}
		})
	}
	return out
}

func matchesElement(element fieldpath.PathElement, item any, index int) bool {
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
		return *element.Index == index
	}
	return false
}
