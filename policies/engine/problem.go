package engine

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Problem is one problem of a policy, with its position.
type Problem struct {
	// File is the name of the module; empty for a problem of the whole policy.
	File string
	// Line and Column begin at 1; 0 means no position.
	Line, Column int
	// Code is the class of the problem, such as rego_type_error.
	Code string
	// Message describes the problem, and a correction.
	Message string
	// Source is the text of the line.
	Source string
	// Dependent is the policy that would break; empty for the policy itself.
	Dependent string
}

// Brief formats the problem on one line, with its position.
func (p Problem) Brief() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// String formats the problem as a compiler does, with a caret.
func (p Problem) String() string {
	text := p.Brief()
	if p.File == "" || p.Line == 0 {
		return text
	}
	if strings.TrimSpace(p.Source) == "" {
		return text
	}
	return text + "\n    " + p.Source + "\n    " + caret(p.Source, p.Column)
}

// caret returns a line that points at a column of the line above. Tabs remain tabs, so
// that the two lines are aligned.
func caret(source string, column int) string {
	before := source[:min(max(column-1, 0), len(source))]
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, before) + "^"
}

// sources are the texts of a policy's modules by file name.
type sources map[string]string

func (s sources) line(file string, number int) string {
	lines := strings.Split(s[file], "\n")
	if number < 1 || number > len(lines) {
		return ""
	}
	return strings.TrimSuffix(lines[number-1], "\r")
}

// problemAt returns a problem at a location.
func (s sources) problemAt(location *ast.Location, code, format string, args ...any) Problem {
	p := Problem{Code: code, Message: fmt.Sprintf(format, args...)}
	if location != nil {
		p.File, p.Line, p.Column = location.File, location.Row, location.Col
		p.Source = s.line(p.File, p.Line)
	}
	return p
}

// problemsOf converts errors of OPA.
func (s sources) problemsOf(err error, file string) []Problem {
	var several ast.Errors
	var one *ast.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &several):
	case errors.As(err, &one):
		several = ast.Errors{one}
	default:
		return []Problem{{File: file, Line: 1, Column: 1, Code: ast.ParseErr, Message: err.Error(), Source: s.line(file, 1)}}
	}
	problems := make([]Problem, 0, len(several))
	for _, e := range several {
		p := s.problemAt(e.Location, e.Code, "%s", e.Message)
		p.File = cmp.Or(p.File, file)
		s.addDetail(&p, e)
		problems = append(problems, p)
	}
	return problems
}

var foundAt = regexp.MustCompile(`^multiple default rules .*:(\d+)$`)

// maxChoices bounds a list of valid names.
const maxChoices = 12

// addDetail adds the details of OPA's error to the message.
func (s sources) addDetail(p *Problem, e *ast.Error) {
	switch detail := e.Details.(type) {
	case nil:
	case *ast.RefErrInvalidDetail:
		p.addInvalidReference(detail)
	case *ast.RefErrUnsupportedDetail:
		p.Message += fmt.Sprintf(": %v has no fields", detail.Have)
	default:
		if lines := detail.Lines(); p.Code != ast.ParseErr && len(lines) > 0 {
			p.Message += ": " + strings.Join(strings.Fields(strings.Join(lines, "; ")), " ")
		}
	}
	if name, undefined := strings.CutPrefix(e.Message, "undefined function "); undefined && builtins[name] {
		p.Message += ": this built-in is not allowed here; a policy decides by its input alone"
	}
	if places := foundAt.FindStringSubmatch(e.Message); places != nil {
		// OPA reports the position of the package. The last rule in its message is the
		// superfluous one.
		p.Line, _ = strconv.Atoi(places[1])
		p.Column, p.Source = 1, s.line(p.File, p.Line)
	}
	if e.Code == ast.UnsafeVarErr {
		p.Message += ": nothing gives it a value"
	}
}

// addInvalidReference moves the column to the invalid part of a reference, and adds the
// valid names to the message.
func (p *Problem) addInvalidReference(detail *ast.RefErrInvalidDetail) {
	// The column is the beginning of the reference. The invalid part comes later.
	if detail.Pos > 0 && detail.Pos < len(detail.Ref) {
		prefix := detail.Ref[:detail.Pos].String()
		if p.Column > 0 && len(p.Source) >= p.Column && strings.HasPrefix(p.Source[p.Column-1:], prefix+".") {
			p.Column += len(prefix) + 1
		}
	}
	if len(detail.OneOf) == 0 {
		return
	}
	choices := make([]string, 0, len(detail.OneOf))
	for _, value := range detail.OneOf {
		choices = append(choices, value.String())
	}
	slices.Sort(choices)
	if len(choices) > maxChoices {
		choices = append(choices[:maxChoices], "...")
	}
	p.Message += ": want one of " + strings.Join(choices, ", ")
}

// sortProblems sorts problems by position, and removes duplicates.
func sortProblems(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(problems)
}
