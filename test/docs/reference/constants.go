package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// entry is a name on the wire and its meaning.
type entry struct{ name, meaning string }

// wellKnown are the files with the constants of conditions, their reasons, and events.
var wellKnown = []string{"api/workload/v1alpha1/wellknown.go", "api/policy/v1alpha1/wellknown.go"}

// conditions returns a table of the condition types and a table of the reasons, from
// the constants and their comments.
func conditions(root string) (string, error) {
	var types, reasons []entry
	for _, file := range wellKnown {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		for _, declaration := range parsed.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			ofTypes := strings.HasPrefix(group.Doc.Text(), "Condition types")
			for _, spec := range group.Specs {
				constant, ok := spec.(*ast.ValueSpec)
				if !ok || len(constant.Names) != 1 || len(constant.Values) != 1 {
					continue
				}
				name := constant.Names[0].Name
				reason := strings.HasPrefix(name, "Reason") || strings.HasPrefix(name, "Event")
				if !reason && !ofTypes {
					continue
				}
				value, ok := text(constant.Values[0])
				if !ok {
					return "", fmt.Errorf("%s: %s is not a string literal", file, name)
				}
				meaning := sentence(constant.Doc.Text(), name)
				if meaning == "" {
					return "", fmt.Errorf("%s: %s has no comment", file, name)
				}
				if reason {
					reasons = append(reasons, entry{value, meaning})
				} else {
					types = append(types, entry{value, meaning})
				}
			}
		}
	}
	return "# Conditions and events\n\n## Condition types\n\n" + table("type", types) +
		"\n## Reasons of conditions and events\n\n" + table("reason", reasons), nil
}

// metricName matches the names of Portico's own metrics.
var metricName = regexp.MustCompile(`^(portico|policy)_[a-z_]+$`)

// metrics returns a table of the metrics in the code.
func metrics(root string) (string, error) {
	var found []entry
	for _, folder := range []string{"cmd", "webhooks", "controllers", "policies"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(node ast.Node) bool {
				if m, ok := metric(node); ok {
					found = append(found, m)
				}
				return true
			})
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return "# Metrics\n\nPortico serves them at `/metrics` of `--metrics-bind-address`, " +
		"next to those of controller-runtime, of client-go's work queues and of Go.\n\n" + table("metric", found), nil
}

// metric returns the name and the help of a metric. They are the first two arguments of
// a call, or fields in a literal of options.
func metric(node ast.Node) (entry, bool) {
	var name, help string
	switch n := node.(type) {
	case *ast.CallExpr:
		if len(n.Args) < 2 {
			return entry{}, false
		}
		name, _ = text(n.Args[0])
		help, _ = text(n.Args[1])
	case *ast.CompositeLit:
		for _, element := range n.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, _ := pair.Key.(*ast.Ident)
			switch {
			case key == nil:
			case key.Name == "Name":
				name, _ = text(pair.Value)
			case key.Name == "Help":
				help, _ = text(pair.Value)
			}
		}
	}
	return entry{name, help}, metricName.MatchString(name) && help != ""
}

// text evaluates a string literal, or a sum of string literals.
func text(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := text(e.X)
		right, ok2 := text(e.Y)
		return left + right, ok && ok2 && e.Op == token.ADD
	}
	return "", false
}

// sentence returns the comment of a constant in one line, without the name of the
// constant and the verb after it.
func sentence(comment, constant string) string {
	comment = strings.Join(strings.Fields(comment), " ")
	comment = strings.TrimPrefix(comment, constant+" ")
	for _, verb := range []string{"says that ", "says ", "is ", "lists "} {
		if rest, found := strings.CutPrefix(comment, verb); found {
			comment = rest
			break
		}
	}
	if comment == "" {
		return ""
	}
	return strings.ToUpper(comment[:1]) + comment[1:]
}

func table(first string, entries []entry) string {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.meaning, b.meaning)) })
	var out strings.Builder
	fmt.Fprintf(&out, "| %s | meaning |\n| --- | --- |\n", first)
	for _, e := range slices.Compact(entries) {
		fmt.Fprintf(&out, "| `%s` | %s |\n", e.name, strings.ReplaceAll(e.meaning, "|", `\|`))
	}
	return out.String()
}
