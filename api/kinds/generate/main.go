// Command generate writes the parts of the repository that are derived from the
// registry of native kinds: webhook rules, roles, and the table of kinds in the docs.
// `make manifests` runs it.
//
// A generated part of a file lies between a line with BEGIN GENERATED and the name of
// a region, and a line with END GENERATED. Both lines are comments.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/portico-io/portico/api/kinds"
)

// files have generated parts.
var files = []string{
	"config/rbac/user_roles.yaml",
	"config/samples/target_role.yaml",
	"config/samples/target_role_impersonate.yaml",
	"config/webhook/held_objects_make_no_events.yaml",
	"config/webhook/mutating.yaml",
	"config/webhook/schedule_label_has_an_effect.yaml",
	"config/webhook/validating.yaml",
	"docs/contributing.md",
	"docs/workloads.md",
}

// markersFile has the RBAC markers of the kinds, which controller-gen reads.
const markersFile = "api/kinds/zz_generated.rbac.go"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate ROOT, the root of the repository")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(root string) error {
	outputs, err := render(root, kinds.All)
	if err != nil {
		return err
	}
	for path, text := range outputs {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil { //nolint:gosec // the mode of a source file
			return err
		}
	}
	return nil
}

// render returns the new content of each generated file.
func render(root string, all []kinds.Kind) (map[string]string, error) {
	outputs := map[string]string{markersFile: markers(all)}
	regions := regions(all)
	var err error
	if regions[diffRegion], err = diff(root, kinds.PodDisruptionBudget{}); err != nil {
		return nil, err
	}
	for _, path := range files {
		data, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // a file of the repository
		if err != nil {
			return nil, err
		}
		if outputs[path], err = replaceRegions(string(data), regions); err != nil {
			return nil, fmt.Errorf("generating %s: %w", path, err)
		}
	}
	return outputs, nil
}

const (
	begin = "BEGIN GENERATED "
	end   = "END GENERATED"
)

// replaceRegions replaces the text of each region, with the indentation of its first
// marker.
func replaceRegions(text string, regions map[string]string) (string, error) {
	var out strings.Builder
	var open string
	for row := range strings.Lines(text) {
		_, name, begins := strings.Cut(strings.TrimSuffix(strings.TrimSpace(row), " -->"), begin)
		switch {
		case begins && open != "":
			return "", fmt.Errorf("region %q has no end", open)
		case begins:
			content, known := regions[name]
			if !known {
				return "", fmt.Errorf("unknown region %q", name)
			}
			open = name
			out.WriteString(row)
			indent := row[:len(row)-len(strings.TrimLeft(row, " "))]
			for generated := range strings.Lines(content) {
				out.WriteString(indent + generated)
			}
		case strings.Contains(row, end):
			open = ""
			out.WriteString(row)
		case open == "":
			out.WriteString(row)
		}
	}
	if open != "" {
		return "", fmt.Errorf("region %q has no end", open)
	}
	return out.String(), nil
}
