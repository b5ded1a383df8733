package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// file is the part of a Go file that is checked.
type file struct {
	path string
	// names are the identifiers that the file declares, and its own name.
	names []text
	// comments and texts are its comments and string literals.
	comments, texts []text
}

// text is a name or a text, and its position.
type text struct{ position, text string }

// goFiles returns the Go files in directories, without generated files.
func goFiles(dirs []string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		dir = strings.TrimSuffix(dir, "/...")
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := entry.Name()
			if entry.IsDir() {
				if name == "bin" || name == "testdata" || strings.HasPrefix(name, ".") && path != dir {
					return fs.SkipDir
				}
				return nil
			}
			if strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "zz_generated") {
				out = append(out, filepath.ToSlash(path))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing the files of %s: %w", dir, err)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(out))), nil
}

func parse(path string) (*file, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return read(set, path, syntax), nil
}

func read(set *token.FileSet, path string, syntax *ast.File) *file {
	out := &file{path: path, names: []text{{path, strings.TrimSuffix(filepath.Base(path), ".go")}}}
	at := func(p token.Pos) string {
		position := set.Position(p)
		return fmt.Sprintf("%s:%d:%d", path, position.Line, position.Column)
	}
	for _, id := range declared(syntax) {
		if id != nil && id.Name != "_" {
			out.names = append(out.names, text{at(id.Pos()), id.Name})
		}
	}
	for _, group := range syntax.Comments {
		out.comments = append(out.comments, text{at(group.Pos()), group.Text()})
	}
	ast.Inspect(syntax, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			out.texts = append(out.texts, text{at(literal.Pos()), literal.Value})
		}
		_, imports := node.(*ast.ImportSpec)
		return !imports
	})
	return out
}

// declared returns the identifiers that a file declares. Identifiers that it only
// uses may belong to other people's packages.
func declared(syntax *ast.File) []*ast.Ident {
	ids := []*ast.Ident{syntax.Name}
	variable := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok {
			ids = append(ids, id)
		}
	}
	ast.Inspect(syntax, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			ids = append(ids, n.Name)
		case *ast.FuncDecl:
			ids = append(ids, n.Name)
		case *ast.TypeSpec:
			ids = append(ids, n.Name)
		case *ast.ValueSpec:
			ids = append(ids, n.Names...)
		case *ast.Field:
			ids = append(ids, n.Names...)
		case *ast.LabeledStmt:
			ids = append(ids, n.Label)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					variable(e)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				variable(n.Key)
				variable(n.Value)
			}
		}
		return true
	})
	return ids
}
