package manifests

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// modulePositions returns the positions of the modules of a Policy in its
// manifest. A module that is not a literal block has no position.
func modulePositions(d Document, modules map[string]string) map[string]position {
	out := map[string]position{}
	var root yaml.Node
	if d.text == "" || yaml.Unmarshal([]byte(d.text), &root) != nil || len(root.Content) == 0 {
		return out
	}
	lines := strings.Split(d.text, "\n")
	before := d.Line - d.firstLine() - 1 // the lines of the file before the document
	for name, value := range fields(field(field(root.Content[0], "spec"), "modules")) {
		source, known := modules[name]
		if !known || value.Style != yaml.LiteralStyle {
			continue
		}
		if indent, ok := indentation(lines[min(value.Line, len(lines)):], source); ok {
			out[name] = position{file: d.File, line: before + value.Line, column: indent}
		}
	}
	return out
}

// indentation returns the indentation of the lines that hold a text.
func indentation(lines []string, text string) (indent int, ok bool) {
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i >= len(lines) {
			return 0, false
		}
		raw := strings.TrimSuffix(lines[i], "\r")
		switch {
		case line == "":
			continue
		case !strings.HasSuffix(raw, line):
			return 0, false
		case indent == 0:
			indent = len(raw) - len(line)
		}
	}
	return indent, true
}

func field(n *yaml.Node, name string) *yaml.Node { return fields(n)[name] }

func fields(n *yaml.Node) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	if n == nil || n.Kind != yaml.MappingNode {
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out[n.Content[i].Value] = n.Content[i+1]
	}
	return out
}
