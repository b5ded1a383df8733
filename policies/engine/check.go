package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/reuse"
)

// Report is the result of checking a policy.
type Report struct {
	// Policy is the name of the policy.
	Policy string
	// Revision identifies the content of the policy.
	Revision string
	// Problems prevent the use of the policy. They are sorted by position.
	Problems []Problem
	// Warnings do not prevent the use of the policy.
	Warnings []Problem
	// Tests are the policy's own tests; nil if they could not be run.
	Tests []Test
	// Summary counts the tests for the status; nil if they could not be run.
	Summary *policyv1alpha1.PolicyTests
}

// OK reports whether the policy can be used.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Compiled reports whether the policy compiles, also when its tests fail.
func (r Report) Compiled() bool { return r.Summary != nil }

// Dependents returns the names of the policies that would break.
func (r Report) Dependents() []string {
	var names []string
	for _, p := range r.Problems {
		if p.Dependent != "" {
			names = append(names, p.Dependent)
		}
	}
	return names
}

// Err returns all problems as one error; nil if there are none.
func (r Report) Err() error {
	if r.OK() {
		return nil
	}
	lines := make([]string, 0, len(r.Problems))
	for _, p := range r.Problems {
		lines = append(lines, p.String())
	}
	return errors.New(strings.Join(lines, "\n"))
}

// revisionLength is long enough to avoid equal revisions of different contents, and
// short enough for a column.
const revisionLength = 12

// Revision identifies the content of a policy. Two policies with the same revision have
// the same decisions.
func Revision(spec policyv1alpha1.PolicySpec) string {
	defaulted := *spec.DeepCopy()
	setDefaults(&defaulted)
	content, err := json.Marshal(defaulted)
	if err != nil { // the parameters are not valid JSON
		content = fmt.Appendf(nil, "%#v", defaulted)
	}
	return contentHash(content)
}

func contentHash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:revisionLength]
}

// setDefaults sets the defaults of the API server, for policies that come from files.
func setDefaults(spec *policyv1alpha1.PolicySpec) {
	if spec.Action == "" {
		spec.Action = policyv1alpha1.Deny
	}
	if spec.FailurePolicy == "" {
		spec.FailurePolicy = policyv1alpha1.Fail
	}
}

// compiled is a policy that can be evaluated. It is never changed.
type compiled struct {
	name, revision string
	spec           policyv1alpha1.PolicySpec
	matches        matcher
	parameters     *ast.Term
	weight         float64
	query          rego.PreparedEvalQuery
	// pkg and modules are the package and the modules of a Library, which other policies
	// import.
	pkg     ast.Ref
	modules modules
	// libraries are the names of the imported Libraries.
	libraries []string
	slowLimit *slowLimit
	// reads and identity decide whether outputs are reused.
	reads    reuse.Reads
	identity reuse.Digest
}

// compilePolicy compiles a policy with the libraries and runs its tests. It returns
// nil for the policy when it cannot be used.
func compilePolicy(ctx context.Context, policy *policyv1alpha1.Policy, libraries map[string]*compiled) (*compiled, Report) {
	spec := *policy.Spec.DeepCopy()
	setDefaults(&spec)
	report := Report{Policy: policy.Name, Revision: Revision(spec)}
	out := &compiled{name: policy.Name, revision: report.Revision, spec: spec, weight: 1, slowLimit: newSlowLimit()}
	if spec.Weight != nil {
		out.weight = float64(*spec.Weight)
	}
	text := sources(spec.Modules)

	var err error
	if out.matches, err = newMatcher(spec.Match); err != nil {
		report.add(Problem{Code: "policy_invalid", Message: "spec.match: " + err.Error()})
	}
	if out.parameters, err = parametersOf(spec); err != nil {
		report.add(Problem{Code: "policy_invalid", Message: "spec.parameters: " + err.Error()})
	}
	if roots[spec.Type] == "" {
		report.add(Problem{Code: "policy_invalid", Message: fmt.Sprintf("spec.type: unknown type %q", spec.Type)})
		return nil, report
	}
	all, problems := parseModules(text)
	report.add(problems...)
	if len(problems) == 0 && len(all.rules()) == 0 {
		report.add(Problem{Code: "policy_invalid", Message: "spec.modules: there are no rules"})
	}
	if len(problems) > 0 || len(all.rules()) == 0 {
		return nil, report.sorted()
	}

	out.modules = all.rules()
	pkg, problems := checkPackages(spec.Type, all, text)
	out.pkg = pkg
	report.add(problems...)
	report.add(checkNames(spec.Type, all, text)...)
	report.Warnings = append(report.Warnings, checkNegation(all, text)...)
	out.compile(ctx, &report, all, libraries, text)
	if !report.OK() {
		return nil, report.sorted()
	}
	return out, report.sorted()
}

func (out *compiled) compile(ctx context.Context, report *Report, all modules, libraries map[string]*compiled, text sources) {
	spec := out.spec
	var imported modules
	out.libraries, imported = importedLibraries(all, libraries, out.name)
	for _, name := range out.libraries {
		if spec.Type == policyv1alpha1.Library && libraries[name].pkg.Equal(out.pkg) {
			report.add(Problem{Code: contractErr, Message: fmt.Sprintf("package %s is already that of Library %s", packageName(out.pkg), name)})
			return
		}
	}

	c := newCompiler(spec.Type)
	problems := c.compile(out.modules.with(imported), text)
	if c.typed {
		sound := out.modules
		if c.Failed() { // no other rule depends on the entry points with errors
			sound = sound.withoutEntryPointsAt(problems)
		}
		problems = append(problems, checkOutputs(spec.Type, out.pkg, c, sound, imported, text)...)
	} else {
		problems = append(problems, remainingProblems(spec.Type, out.pkg, out.modules, imported, problems, text)...)
	}
	compiles := len(report.Problems)+len(problems) == 0
	report.add(problems...)
	if len(c.Errors) > 0 && len(all) == len(out.modules) {
		return // test files add nothing to these problems
	}

	tests, coverage, problems := runTests(ctx, spec.Type, all, imported, text)
	report.add(problems...)
	if !compiles {
		return
	}
	if tests != nil || len(problems) == 0 {
		report.Tests, report.Summary = tests, summary(tests, coverage)
	}
	if len(tests) == 0 && len(problems) == 0 {
		report.Warnings = append(report.Warnings, Problem{Code: "policy_no_tests",
			Message: "the policy has no tests; add a module whose name ends in _test.rego, with rules whose names begin with test_"})
	}
	out.identify(libraries)
	if spec.Type == policyv1alpha1.Library {
		return
	}
	out.reads = reuse.ReadsOf(c.Modules)
	var err error
	if out.query, err = prepareQuery(ctx, c.Compiler, spec.Type, out.pkg, out.modules); err != nil {
		report.add(Problem{Code: ast.CompileErr, Message: "preparing: " + err.Error()})
	}
}

// prepareQuery prepares a query for the existing entry points.
func prepareQuery(ctx context.Context, c *ast.Compiler, t policyv1alpha1.PolicyType, pkg ast.Ref, m modules) (rego.PreparedEvalQuery, error) {
	var fields []string
	for _, name := range entryPoints[t] {
		if len(rulesNamed(m, name)) > 0 {
			fields = append(fields, fmt.Sprintf("%q: %v", name, pkg.Append(ast.StringTerm(name))))
		}
	}
	return rego.New(
		rego.Query("{"+strings.Join(fields, ", ")+"}"),
		rego.Compiler(c),
		rego.StrictBuiltinErrors(true), // otherwise an error in a deny rule would allow the object
	).PrepareForEval(ctx)
}

func parametersOf(spec policyv1alpha1.PolicySpec) (*ast.Term, error) {
	values := map[string]any{}
	if spec.Parameters != nil && len(spec.Parameters.Raw) > 0 {
		if err := json.Unmarshal(spec.Parameters.Raw, &values); err != nil {
			return nil, fmt.Errorf("want an object: %w", err)
		}
	}
	return input.Term(values), nil
}

// importedLibraries returns the libraries that modules import, directly or not, by
// name, with their modules.
func importedLibraries(m modules, libraries map[string]*compiled, self string) ([]string, modules) {
	used := map[string]bool{}
	imported := modules{}
	var visit func(modules)
	visit = func(m modules) {
		for _, module := range m {
			for name, library := range libraries {
				if name == self || used[name] || !refersTo(module, library.pkg) {
					continue
				}
				used[name] = true
				for file, parsed := range library.modules {
					imported[name+"/"+file] = parsed
				}
				visit(library.modules)
			}
		}
	}
	visit(m)
	return slices.Sorted(maps.Keys(used)), imported
}

func refersTo(module *ast.Module, pkg ast.Ref) bool {
	// A library with the same package is found too, so that it is refused.
	found := module.Package.Path.Equal(pkg)
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		if !found && ref.HasPrefix(ast.DefaultRootRef) {
			prefix := ref.ConstantPrefix()
			found = prefix.HasPrefix(pkg) || len(prefix) > 1 && pkg.HasPrefix(prefix)
		}
		return found
	})
	return found
}

func (r *Report) add(problems ...Problem) { r.Problems = append(r.Problems, problems...) }

func (r Report) sorted() Report {
	r.Problems, r.Warnings = sortProblems(r.Problems), sortProblems(r.Warnings)
	return r
}
