// Command generate writes the JSON schemas of the policies' input to a directory. The
// comments of the Go types become descriptions.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIRECTORY, in the directory of package input")
		os.Exit(2)
	}
	if err := generate(".", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(source, directory string) error {
	comments, err := readComments(filepath.Join(source, "input.go"))
	if err != nil {
		return fmt.Errorf("reading comments: %w", err)
	}
	describe := func(typeName, field string) string { return comments[typeName+"."+field] }
	for _, t := range []policyv1alpha1.PolicyType{policyv1alpha1.Scheduling, policyv1alpha1.Publish} {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(input.Schema(t, describe)); err != nil {
			return fmt.Errorf("encoding the schema of %s: %w", t, err)
		}
		name := filepath.Join(directory, strings.ToLower(string(t))+".json")
		if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing a schema: %w", err)
		}
	}
	return nil
}

// readComments returns the comment of every field, by "Type.Field".
func readComments(file string) (map[string]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	comments := map[string]string{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range structure.Fields.List {
			for _, name := range field.Names {
				comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
		return false
	})
	return comments, nil
}
