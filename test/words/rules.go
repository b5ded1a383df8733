package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// rules are the content of words.yaml.
type rules struct {
	Banned  []*ban       `json:"banned"`
	Allowed []*allowance `json:"allowed"`
	Vague   vague        `json:"vague"`

	words map[string]*ban // by each form of the word
}

// vague bounds the number of vague words in the comments of a directory, for each
// thousand words.
type vague struct {
	Words       []string `json:"words"`
	PerThousand float64  `json:"perThousand"`
}

// ban is a word that names do not use.
type ban struct {
	Word  string   `json:"word"`
	Forms []string `json:"forms"`
	// Use is the word to use instead.
	Use string `json:"use"`
	// Everywhere bans the word in comments and texts, too.
	Everywhere bool `json:"everywhere"`
}

// allowance lets some names keep a banned word.
type allowance struct {
	Word   string `json:"word"`
	In     string `json:"in"`
	Reason string `json:"reason"`

	in *regexp.Regexp
}

func parseRules(data []byte) (*rules, error) {
	out := &rules{words: map[string]*ban{}}
	if err := yaml.UnmarshalStrict(data, out); err != nil {
		return nil, fmt.Errorf("words.yaml: %w", err)
	}
	for _, b := range out.Banned {
		for _, form := range append(forms(b.Word), b.Forms...) {
			out.words[form] = b
		}
	}
	for _, a := range out.Allowed {
		if a.Reason == "" || out.words[a.Word] == nil {
			return nil, fmt.Errorf("words.yaml: the allowance of %q needs a banned word and a reason", a.Word)
		}
		var err error
		if a.in, err = regexp.Compile(a.In); err != nil {
			return nil, fmt.Errorf("words.yaml: the allowance of %q: %w", a.Word, err)
		}
	}
	return out, nil
}

// forms returns the regular forms of a word.
func forms(word string) []string {
	stem := strings.TrimSuffix(word, "e")
	return []string{word, word + "s", stem + "es", stem + "ed", stem + "ing", stem + "er", stem + "ers"}
}

// allowances returns the set of all allowances.
func (r *rules) allowances() map[*allowance]*allowance {
	out := map[*allowance]*allowance{}
	for _, a := range r.Allowed {
		out[a] = a
	}
	return out
}

// check returns the problems of a file, and removes from unused the allowances
// that the file needs.
func (r *rules) check(f *file, unused map[*allowance]*allowance) []string {
	var out []string
	for _, n := range f.names {
		for _, word := range split(n.text) {
			b := r.words[word]
			if b == nil || r.allows(b, f.path+": "+n.text, unused) {
				continue
			}
			out = append(out, fmt.Sprintf("%s: %s: the word %q; use %s", n.position, n.text, word, b.Use))
		}
	}
	for _, t := range append(slices.Clone(f.comments), f.texts...) {
		for _, word := range splitText(t.text) {
			b := r.words[word]
			if b == nil || !b.Everywhere || r.allows(b, f.path+": text", unused) {
				continue
			}
			out = append(out, fmt.Sprintf("%s: text: the word %q; use %s", t.position, word, b.Use))
		}
	}
	return out
}

func (r *rules) allows(b *ban, where string, unused map[*allowance]*allowance) bool {
	for _, a := range r.Allowed {
		if r.words[a.Word] == b && a.in.MatchString(where) {
			delete(unused, a)
			return true
		}
	}
	return false
}

// split returns the words of an identifier or a file name, in lower case.
func split(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words, word = append(words, strings.ToLower(string(word))), nil
		}
	}
	letters := []rune(name)
	for i, c := range letters {
		switch {
		case !unicode.IsLetter(c):
			end()
			continue
		case unicode.IsUpper(c) && (len(word) > 0 && !unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			end()
		}
		word = append(word, c)
	}
	end()
	return words
}

var wordRE = regexp.MustCompile(`[A-Za-z']+`)

// splitText returns the words of a text, in lower case.
func splitText(text string) []string {
	words := wordRE.FindAllString(text, -1)
	for i, word := range words {
		words[i] = strings.ToLower(word)
	}
	return words
}
