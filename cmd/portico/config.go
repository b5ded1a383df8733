package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/sets"
)

// commandLineOnly are the flags that are not allowed in a file.
var commandLineOnly = sets.New("config", "help", "version")

// readConfig sets the flags in a file of options. A flag on the command line takes
// precedence. readConfig returns all errors in the file at once.
func readConfig(path string, flags *pflag.FlagSet) error {
	data, err := os.ReadFile(path) //nolint:gosec // the administrator names the file
	if err != nil {
		return fmt.Errorf("reading options: %w", err)
	}
	return applyConfig(path, data, flags)
}

func applyConfig(path string, data []byte, flags *pflag.FlagSet) error {
	at := func(node *yaml.Node, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %w", path, node.Line, fmt.Errorf(format, args...))
	}

	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil // the file is empty
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: want one YAML document, found more", path)
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return at(root, "want a mapping of option names to values")
	}

	var errs []error
	seen := map[string]int{}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		name := key.Value
		flag := flags.Lookup(name)
		line, repeated := seen[name]
		seen[name] = key.Line
		switch {
		case flag == nil:
			errs = append(errs, at(key, "%q is not an option; did you mean %q?", name, closestOption(name, flags)))
		case commandLineOnly.Has(name):
			errs = append(errs, at(key, "%q can only be given on the command line", name))
		case repeated:
			errs = append(errs, at(key, "%q was given before, on line %d", name, line))
		case flag.Changed:
			// a flag on the command line takes precedence
		default:
			if err := set(flags, flag, value); err != nil {
				errs = append(errs, at(value, "%s: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// set gives a flag the value of a YAML node.
func set(flags *pflag.FlagSet, flag *pflag.Flag, node *yaml.Node) error {
	list, repeatable := flag.Value.(pflag.SliceValue)
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return errors.New("has no value")
	case node.Kind == yaml.ScalarNode:
		return flags.Set(flag.Name, node.Value)
	case node.Kind == yaml.SequenceNode && repeatable:
		var values []string
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return fmt.Errorf("line %d: want a list of plain values", item.Line)
			}
			values = append(values, item.Value)
		}
		return list.Replace(values)
	case repeatable:
		return errors.New("want a value or a list of values")
	}
	return errors.New("want a single value")
}

// closestOption returns the option whose name has the smallest edit distance.
func closestOption(name string, flags *pflag.FlagSet) string {
	var names []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if !commandLineOnly.Has(flag.Name) {
			names = append(names, flag.Name)
		}
	})
	// Camel case is the likeliest mistake in a YAML file.
	var kebab strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			kebab.WriteByte('-')
			r += 'a' - 'A'
		}
		kebab.WriteRune(r)
	}
	return slices.MinFunc(names, func(a, b string) int {
		return levenshtein.ComputeDistance(kebab.String(), a) - levenshtein.ComputeDistance(kebab.String(), b)
	})
}
