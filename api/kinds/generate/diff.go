package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/portico-io/portico/api/kinds"
)

// diffRegion has the change that adds a kind to the registry.
const diffRegion = "diff of a kind"

// registryFile has the registry of kinds.
const registryFile = "api/kinds/kinds.go"

// diff returns the change that adds a kind: its file, its sample and its entry.
func diff(root string, kind kinds.Kind) (string, error) {
	name := kind.GroupVersionKind().Kind
	var out strings.Builder
	for _, path := range []string{"api/kinds/" + strings.ToLower(name) + ".go", "api/kinds/testdata/samples/" + kind.Resource() + ".yaml"} {
		text, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // a file of the repository
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "+++ %s\n", path)
		for row := range strings.Lines(string(text)) {
			out.WriteString("+" + row)
		}
	}
	registry, err := os.ReadFile(filepath.Join(root, registryFile)) //nolint:gosec // a file of the repository
	if err != nil {
		return "", err
	}
	_, entries, _ := strings.Cut(string(registry), "\nvar All = []Kind{\n")
	entries, _, found := strings.Cut(entries, "}\n\n")
	if !found {
		return "", fmt.Errorf("%s has no registry", registryFile)
	}
	fmt.Fprintf(&out, "+++ %s\n var All = []Kind{\n", registryFile)
	for row := range strings.Lines(entries) {
		if strings.TrimSpace(row) == name+"{}," {
			out.WriteString("+" + row)
		} else {
			out.WriteString(" " + row)
		}
	}
	return "```diff\n" + out.String() + " }\n```\n", nil
}
