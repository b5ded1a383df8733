// Command shape checks the size of packages and types: a package above 2,500 lines of
// code, or a type above 40 methods, holds two ideas. Tests, comments, empty lines and
// generated code do not count. The linter checks the size of functions.
//
//	go run ./test/shape [dir...]
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxLines   = 2500
	maxMethods = 40
)

func main() {
	dirs := os.Args[1:]
	if len(dirs) == 0 {
		dirs = []string{"api", "cmd", "controllers", "policies", "webhooks"}
	}
	sizes := sizes{lines: map[string]int{}, methods: map[string]int{}}
	for _, dir := range dirs {
		if err := sizes.addDir(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	problems := sizes.problems()
	for _, problem := range problems {
		fmt.Println(problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// sizes are the lines of code of each package, and the methods of each type.
type sizes struct{ lines, methods map[string]int }

func (s sizes) addDir(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(entry.Name(), "zz_generated") {
			return nil
		}
		source, err := os.ReadFile(path) //nolint:gosec // a file of this tree
		if err != nil {
			return err
		}
		return s.add(filepath.ToSlash(path), source)
	})
}

func (s sizes) add(path string, source []byte) error {
	dir := filepath.Dir(path)
	s.lines[dir] += linesOfCode(source)
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil {
			s.methods[dir+"."+receiver(f.Recv.List[0].Type)]++
		}
	}
	return nil
}

// linesOfCode counts the lines with a token that is no comment.
func linesOfCode(source []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		position, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(position)
		for line := first; line <= first+strings.Count(literal, "\n"); line++ {
			lines[line] = true
		}
	}
}

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

func (s sizes) problems() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.lines)) {
		if n := s.lines[name]; n > maxLines {
			out = append(out, fmt.Sprintf("%s: the package has %d lines of code, at most %d", name, n, maxLines))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.methods)) {
		if n := s.methods[name]; n > maxMethods {
			out = append(out, fmt.Sprintf("%s: the type has %d methods, at most %d", name, n, maxMethods))
		}
	}
	return out
}
