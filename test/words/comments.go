package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// count is the number of words in comments, and of vague words among them.
type count struct{ words, vague int }

// perThousand is the number of vague words for each thousand words.
func (c count) perThousand() float64 { return 1000 * float64(c.vague) / float64(max(c.words, 1)) }

// counts are the counts of each directory.
type counts map[string]count

func (c counts) add(f *file, vague []string) {
	dir := filepath.Dir(f.path)
	sum := c[dir]
	for _, comment := range f.comments {
		for _, word := range splitText(comment.text) {
			sum.words++
			if slices.Contains(vague, word) {
				sum.vague++
			}
		}
	}
	c[dir] = sum
}

// tolerated is the number of vague words that every directory may have. One is more
// than the bound of a directory with few comments.
const tolerated = 1

// over returns a problem for each directory above the bound.
func (c counts) over(bound float64) []string {
	var out []string
	for _, dir := range slices.Sorted(maps.Keys(c)) {
		if n := c[dir]; n.vague > tolerated && n.perThousand() > bound {
			out = append(out, fmt.Sprintf("%s: comments have %d vague words in %d; at most %g for each thousand, so name the thing", dir, n.vague, n.words, bound))
		}
	}
	return out
}

// String returns a line for each directory, and one for their sum.
func (c counts) String() string {
	var out strings.Builder
	var sum count
	for _, dir := range slices.Sorted(maps.Keys(c)) {
		n := c[dir]
		sum.words, sum.vague = sum.words+n.words, sum.vague+n.vague
		fmt.Fprintf(&out, "%6.1f %4d of %6d  %s\n", n.perThousand(), n.vague, n.words, dir)
	}
	fmt.Fprintf(&out, "%6.1f %4d of %6d  all\n", sum.perThousand(), sum.vague, sum.words)
	return out.String()
}
