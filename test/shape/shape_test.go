package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinesOfCode(t *testing.T) {
	const source = "// Package a.\npackage a\n\n/* two\nlines */\nconst text = `three\nlines\nhere` // and a comment\n\nfunc f() {\n}\n"
	if got := linesOfCode([]byte(source)); got != 6 {
		t.Errorf("%d lines, want 6", got)
	}
}

func TestProblems(t *testing.T) {
	s := sizes{lines: map[string]int{}, methods: map[string]int{}}
	files := map[string]string{
		"a/a.go": "package a\n" + strings.Repeat("func (t *T[K]) _() {}\n", maxMethods+1),
		"b/b.go": "package b\n" + strings.Repeat("var _ = 1\n\n// no code\n", maxLines),
		"c/c.go": "package c\n" + strings.Repeat("func (t T) _() {}\n", maxMethods) + strings.Repeat("var _ = 1\n", maxLines-maxMethods-1),
	}
	for path, source := range files {
		if err := s.add(path, []byte(source)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"b: the package has 2501 lines of code, at most 2500", "a.T: the type has 41 methods, at most 40"}
	if diff := cmp.Diff(want, s.problems()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
