package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

// maxSource limits the size of a policy, and so the time of its compilation.
const maxSource = 256 << 10

// capabilities are the built-in functions that a policy may call: functions whose
// result depends only on their arguments, and the clock, which has one value for a
// decision. It is a rule and not a list, so that a new release of OPA cannot add an
// unsafe function. Ranges are excluded because they turn one number or one network into
// millions of values.
var capabilities = sync.OnceValue(func() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(ast.RegoV1))
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool {
		return (b.Nondeterministic && b.Name != ast.NowNanos.Name) ||
			strings.HasPrefix(b.Name, "numbers.range") || b.Name == ast.NetCIDRExpand.Name ||
			b.Name == ast.RegoParseModule.Name || b.Name == ast.Trace.Name
	})
	c.AllowNet = []string{} // no schema from a remote host
	return c
})

// builtins are all functions of OPA. They distinguish a forbidden function from a
// misspelt one.
var builtins = func() map[string]bool {
	names := map[string]bool{}
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		names[b.Name] = true
	}
	return names
}()

// schemas gives `input` a type in every module, without an annotation by the author. A
// Library has no schema: its references are checked with the policy that imports it.
var schemas = func() map[policyv1alpha1.PolicyType]*ast.SchemaSet {
	sets := map[policyv1alpha1.PolicyType]*ast.SchemaSet{}
	for _, t := range []policyv1alpha1.PolicyType{policyv1alpha1.Scheduling, policyv1alpha1.Publish} {
		set := ast.NewSchemaSet()
		set.Put(ast.SchemaRootRef, input.Schema(t, nil))
		sets[t] = set
	}
	return sets
}()

// modules are parsed files by name.
type modules map[string]*ast.Module

// parseModules parses all files, and returns the problems of all of them.
func parseModules(text sources) (modules, []Problem) {
	size := 0
	for _, source := range text {
		size += len(source)
	}
	if size > maxSource {
		return nil, []Problem{{Code: ast.ParseErr, Message: fmt.Sprintf("the modules are %d bytes together; at most %d are read", size, maxSource)}}
	}
	parsed := modules{}
	var problems []Problem
	for _, file := range slices.Sorted(maps.Keys(text)) {
		module, err := parseFile(file, text[file])
		switch {
		case err != nil:
			problems = append(problems, text.parseProblems(file, err)...)
		case module == nil:
			problems = append(problems, Problem{File: file, Line: 1, Column: 1, Code: ast.ParseErr, Message: "the module is empty; begin it with a package"})
		default:
			parsed[file] = module
		}
	}
	return parsed, problems
}

func parseFile(file, source string) (*ast.Module, error) {
	return ast.ParseModuleWithOpts(file, source, ast.ParserOptions{
		RegoVersion: ast.RegoV1, ProcessAnnotation: true, Capabilities: capabilities(),
	})
}

// maxPasses bounds the number of times a policy is parsed to find more mistakes.
const maxPasses = 20

// parseProblems returns the problems of one file. The parser stops at the first
// problem. To find the others, parseProblems blanks the rule with the problem, and
// parses the file again.
func (s sources) parseProblems(file string, err error) []Problem {
	var problems []Problem
	lines := strings.Split(s[file], "\n")
	for range maxPasses {
		found := s.problemsOf(err, file)
		if len(found) == 0 {
			break
		}
		if len(problems) > 0 && found[0].Line == 0 {
			break // no rule is left to blank
		}
		s.moveToLastText(&found[0])
		problems = append(problems, found[0])
		if !blankRule(lines, found[0].Line) {
			break
		}
		_, err = parseFile(file, strings.Join(lines, "\n"))
	}
	return problems
}

// moveToLastText moves a problem at the end of a file to the last line that is not
// empty.
func (s sources) moveToLastText(p *Problem) {
	if p.Column > 0 && strings.TrimSpace(p.Source) != "" {
		return
	}
	for p.Line > 1 && strings.TrimSpace(p.Source) == "" {
		p.Line--
		p.Source = s.line(p.File, p.Line)
		p.Column = len(p.Source) + 1
	}
}

// blankRule empties the lines of the rule that contains a line. A rule begins at a line
// with text in the first column.
func blankRule(lines []string, line int) bool {
	begins := func(i int) bool { return lines[i] != "" && !strings.ContainsRune(" \t\r}])#", rune(lines[i][0])) }
	first := min(line, len(lines)) - 1
	for first > 0 && !begins(first) {
		first--
	}
	if first < 0 || strings.HasPrefix(lines[first], "package") || strings.HasPrefix(lines[first], "import") || !begins(first) {
		return false
	}
	lines[first] = ""
	for i := first + 1; i < len(lines) && !begins(i); i++ {
		lines[i] = ""
	}
	return true
}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.rego") }

// rules returns the modules without tests.
func (m modules) rules() modules {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(file string, _ *ast.Module) bool { return isTest(file) })
	return out
}

func (m modules) with(other modules) modules {
	out := maps.Clone(m)
	maps.Copy(out, other)
	return out
}

// compiler is a compiler of OPA with its progress.
type compiler struct {
	*ast.Compiler
	// typed is true after type checking, also if there were errors.
	typed bool
}

// newCompiler returns a compiler for policies of a type.
func newCompiler(t policyv1alpha1.PolicyType) *compiler {
	c := &compiler{}
	c.Compiler = ast.NewCompiler().
		WithStrict(true).
		WithCapabilities(capabilities()).
		WithDefaultRegoVersion(ast.RegoV1).
		WithEnablePrintStatements(true).
		WithSchemas(schemas[t]).
		WithUseTypeCheckAnnotations(true).
		WithStageAfterID(ast.StageCheckTypes, ast.CompilerStageDefinition{
			Name: "Typed", MetricName: "typed",
			Stage: func(*ast.Compiler) *ast.Error { c.typed = true; return nil },
		})
	return c
}

// problems returns the errors of the compiler, and the errors that only checkData
// finds.
func (c *compiler) problems(text sources) []Problem {
	var problems []Problem
	if c.Failed() {
		problems = text.problemsOf(c.Errors, "")
	}
	if c.typed {
		problems = append(problems, c.checkData(text)...)
	}
	return problems
}

// checkData refuses references to data that no rule defines. There is no other data,
// and a reference to missing data is undefined in Rego: a misspelt name would allow
// every object.
func (c *compiler) checkData(text sources) []Problem {
	var problems []Problem
	for name, module := range c.Modules {
		if _, ours := text[name]; !ours {
			continue
		}
		ast.WalkRefs(module, func(ref ast.Ref) bool {
			if !ref.HasPrefix(ast.DefaultRootRef) || ref[0].Location == nil || ref[0].Location.Row == 0 {
				return false
			}
			prefix := ref.ConstantPrefix()
			if len(prefix) == 1 || len(c.GetRules(prefix)) == 0 && !isPackageOf(c.Compiler, prefix) {
				problems = append(problems, text.problemAt(ref[0].Location, ast.TypeErr,
					"undefined ref: %s: a policy has its own rules and data.lib, and no other data", formatRef(ref)))
			}
			return false
		})
	}
	return problems
}

// formatRef formats a reference up to its first variable, because the compiler has
// renamed the variables.
func formatRef(ref ast.Ref) string {
	if prefix := ref.ConstantPrefix(); len(prefix) < len(ref) {
		return prefix.String() + "[...]"
	}
	return ref.String()
}

func isPackageOf(c *ast.Compiler, prefix ast.Ref) bool {
	for _, module := range c.Modules {
		if module.Package.Path.Equal(prefix) {
			return true
		}
	}
	return false
}

// compile compiles modules, and converts a panic to a problem.
func (c *compiler) compile(m modules, text sources) (problems []Problem) {
	defer func() {
		if r := recover(); r != nil {
			problems = append(problems, Problem{Code: ast.CompileErr, Message: fmt.Sprintf("compiling panicked: %v", r)})
		}
	}()
	c.Compile(m)
	return c.problems(text)
}

// remainingProblems finds the problems that a compiler did not reach because it stopped
// early. It leaves out the entry points with problems, on which no other rule depends.
func remainingProblems(t policyv1alpha1.PolicyType, pkg ast.Ref, m, libraries modules, known []Problem, text sources) []Problem {
	var problems []Problem
	for range maxPasses {
		m = m.withoutEntryPointsAt(known)
		c := newCompiler(t)
		c.WithAllowUndefinedFunctionCalls(true)
		found := c.compile(m.with(libraries), text)
		for _, p := range found {
			if !strings.HasSuffix(p.Message, " unused") { // a rule that was left out may use it
				problems = append(problems, p)
			}
		}
		if c.typed && !c.Failed() {
			return append(problems, checkOutputs(t, pkg, c, m, libraries, text)...)
		}
		if c.typed || len(found) == 0 || slices.Equal(found, known) {
			break
		}
		known = found
	}
	return problems
}

func (m modules) withoutEntryPointsAt(problems []Problem) modules {
	out := modules{}
	for file, module := range m {
		trimmed := *module
		trimmed.Rules = nil
		for i, rule := range module.Rules {
			end := 1 << 30
			if i+1 < len(module.Rules) {
				end = module.Rules[i+1].Location.Row
			}
			wrong := slices.ContainsFunc(problems, func(p Problem) bool {
				return p.File == file && p.Line >= rule.Location.Row && p.Line < max(end, rule.Location.Row+1)
			})
			if !wrong || !slices.Contains(allEntryPoints, ruleName(rule)) {
				trimmed.Rules = append(trimmed.Rules, rule)
			}
		}
		out[file] = &trimmed
	}
	return out
}
