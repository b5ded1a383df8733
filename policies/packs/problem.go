package packs

import (
	"fmt"
	"strings"
)

// Problem is a mistake in a pack, with its position.
type Problem struct {
	// File is the path in the pack; empty for a problem of the instance.
	File string
	// Line begins at 1; 0 means no position.
	Line int
	// Field is the path of the field in the file, or in the instance.
	Field string
	// Message describes the problem, and a correction.
	Message string
}

// String formats the problem as file:line: field: message.
func (p Problem) String() string {
	var out strings.Builder
	if p.File != "" {
		out.WriteString(p.File + ":")
		if p.Line > 0 {
			fmt.Fprintf(&out, "%d:", p.Line)
		}
		out.WriteString(" ")
	}
	if p.Field != "" {
		out.WriteString(p.Field + ": ")
	}
	return out.String() + p.Message
}

// Problems is an error with all problems that were found.
type Problems []Problem

// Error has one problem on each line.
func (p Problems) Error() string {
	out := make([]string, 0, len(p))
	for _, problem := range p {
		out = append(out, problem.String())
	}
	return strings.Join(out, "\n")
}

func (p *Problems) add(file string, number int, field, format string, args ...any) {
	*p = append(*p, Problem{File: file, Line: number, Field: field, Message: fmt.Sprintf(format, args...)})
}
