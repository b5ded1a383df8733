package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const banned = `
banned:
- {word: tell, forms: [told], use: report}
- {word: journey, use: scope, everywhere: true}
- {word: line, use: connection}
allowed:
- {word: line, in: 'text\.go: ', reason: a position}
`

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		path   string
		source string
		want   []string
	}{
		"Forms": {
			reason: "Each declaration is checked for each form of a word.",
			path:   "a.go",
			source: "package a\nfunc (t T) tellAll(told int) (TELLS bool) {\n\tfor isTold := range x { y, telling := 1, 2 }\n}",
			want: []string{
				`a.go:2:12: tellAll: the word "tell"; use report`, `a.go:2:20: told: the word "told"; use report`,
				`a.go:2:31: TELLS: the word "tells"; use report`, `a.go:3:6: isTold: the word "told"; use report`,
				`a.go:3:29: telling: the word "telling"; use report`,
			},
		},
		"Uses": {
			reason: "A use may name a foreign identifier, and a longer word is another word.",
			path:   "a.go",
			source: "package a\nvar teller1, intelligent = fortune.Tell(), tell",
			want:   []string{`a.go:2:5: teller1: the word "teller"; use report`},
		},
		"Files": {
			reason: "The names of files and packages are checked.",
			path:   "dir/tell_test.go",
			source: "package told",
			want:   []string{`dir/tell_test.go: tell_test: the word "tell"; use report`, `dir/tell_test.go:1:9: told: the word "told"; use report`},
		},
		"Texts": {
			reason: "Comments and texts are checked for words that are banned everywhere.",
			path:   "a.go",
			source: "package a\n\n// On its journey, tell it.\nconst a = \"Journeys end\"",
			want:   []string{`a.go:3:1: text: the word "journey"; use scope`, `a.go:4:11: text: the word "journeys"; use scope`},
		},
		"Allowed": {
			reason: "An allowance holds for the names that it matches.",
			path:   "text.go",
			source: "package a\nvar line, tell int",
			want:   []string{`text.go:2:11: tell: the word "tell"; use report`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := parseRules([]byte(banned))
			if err != nil {
				t.Fatal(err)
			}
			set := token.NewFileSet()
			syntax, err := parser.ParseFile(set, tc.path, tc.source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, rules.check(read(set, tc.path, syntax), rules.allowances())); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	for name, want := range map[string][]string{
		"tellAll":       {"tell", "all"},
		"HTTPServer2Go": {"http", "server", "go"},
		"a_b-c.d":       {"a", "b", "c", "d"},
		"ID":            {"id"},
	} {
		if diff := cmp.Diff(want, split(name)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestComments(t *testing.T) {
	comments, vague := counts{}, []string{"what", "whatever"}
	for path, texts := range map[string][]text{
		"a/b.go": {{text: "It says what it does."}, {text: "Whatever."}},
		"c/d.go": {{text: "what"}},
	} {
		comments.add(&file{path: path, comments: texts}, vague)
	}
	want := []string{"a: comments have 2 vague words in 6; at most 2 for each thousand, so name the thing"}
	if diff := cmp.Diff(want, comments.over(2)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRules reads the rules of this tree.
func TestRules(t *testing.T) {
	if _, err := parseRules(config); err != nil {
		t.Error(err)
	}
}
