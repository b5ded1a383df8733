package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/portico-io/portico/policies/engine"
)

const testHelp = `Run the tests of policies: the rules whose names begin with test_, in the files
whose names end in _test.rego. A failed test is printed with its position
and its output. Coverage is the part of a policy's lines that its tests reach.

PATH is a Rego file, a Policy manifest, a bundle, or a directory with them; without
one it is the current directory.`

func (c *command) test() *cobra.Command {
	var o struct {
		run      string
		verbose  bool
		coverage int
		output   output
	}
	cmd := &cobra.Command{
		Use: "test [PATH...]", Short: "Run the tests of policies",
		Long: testHelp + exitCodesHelp("all tests pass", "a test fails, a policy does not compile, or coverage is too low"),
		Example: `  # All of a directory
  kubectl portico policy test policies/

  # One policy, with the names and prints of its tests
  kubectl portico policy test policies/scheduling/spread.rego -v

  # For a build server
  kubectl portico policy test policies/ --coverage 90 -o junit`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, paths []string) error {
			wanted, err := regexp.Compile(o.run)
			if err != nil {
				return fmt.Errorf("--run: %w", err)
			}
			policies, err := c.read(paths)
			if err != nil {
				return err
			}
			results := policies.results(policies.reports(cmd.Context()), wanted)
			if err := c.write(o.output, results, func() { c.printResults(results, o.verbose, o.coverage) }); err != nil {
				return err
			}
			return results.err(o.coverage)
		},
	}
	cmd.Flags().StringVar(&o.run, "run", "", "run only the tests whose full name matches a regular expression")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print every test, with its output")
	cmd.Flags().IntVar(&o.coverage, "coverage", 0, "the minimum percentage of each policy's lines that its tests cover")
	o.output.add(cmd)
	return cmd
}

// results are the results for policies, as JSON.
type results struct {
	// Engine is the version of the engine.
	Engine   string         `json:"engine"`
	Passed   int            `json:"passed"`
	Failed   int            `json:"failed"`
	Policies []policyResult `json:"policies"`
}

type policyResult struct {
	Name     string        `json:"name"`
	Type     string        `json:"type"`
	File     string        `json:"file"`
	Revision string        `json:"revision"`
	OK       bool          `json:"ok"`
	Coverage *int32        `json:"coverage,omitempty"`
	Tests    []testResult  `json:"tests"`
	Problems []problemJSON `json:"problems"`
	Warnings []problemJSON `json:"warnings"`

	problems, warnings []engine.Problem
}

type testResult struct {
	Name    string  `json:"name"`
	Package string  `json:"package"`
	At      string  `json:"at"`
	Passed  bool    `json:"passed"`
	Failure string  `json:"failure,omitempty"`
	Output  string  `json:"output,omitempty"`
	Seconds float64 `json:"seconds"`
}

type problemJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func problemsJSON(problems []engine.Problem) []problemJSON {
	out := make([]problemJSON, 0, len(problems))
	for _, p := range problems {
		out = append(out, problemJSON{File: p.File, Line: p.Line, Column: p.Column, Code: p.Code, Message: p.Message})
	}
	return out
}

// results converts reports for the output. wanted selects tests by name; nil selects
// all tests.
func (c policySet) results(reports []engine.Report, wanted *regexp.Regexp) results {
	out := results{Engine: engine.Version, Policies: []policyResult{}}
	for _, report := range reports {
		source := c.source(report.Policy)
		p := policyResult{
			Name: report.Policy, Type: string(source.Spec.Type), File: source.File, Revision: report.Revision, OK: report.OK(),
			Tests: []testResult{}, problems: c.locateProblems(report, report.Problems), warnings: c.locateProblems(report, report.Warnings),
		}
		p.Problems, p.Warnings = problemsJSON(p.problems), problemsJSON(p.warnings)
		if report.Summary != nil {
			p.Coverage = &report.Summary.Coverage
		}
		for _, test := range report.Tests {
			if wanted != nil && !wanted.MatchString(test.Name) {
				continue
			}
			at := strings.LastIndex(test.Name, ".")
			p.Tests = append(p.Tests, testResult{
				Name: test.Name[at+1:], Package: strings.TrimPrefix(test.Name[:max(at, 0)], "data."), At: source.Position(test.File, test.Line),
				Passed: test.Failure == "", Failure: test.Failure, Output: test.Output, Seconds: test.Duration.Seconds(),
			})
			if test.Failure == "" {
				out.Passed++
			} else {
				out.Failed++
			}
		}
		out.Policies = append(out.Policies, p)
	}
	return out
}

const testFailed = "policy_test_failed"

// broken returns the problems other than failed tests.
func (p policyResult) broken() []engine.Problem {
	return slices.DeleteFunc(slices.Clone(p.problems), func(problem engine.Problem) bool {
		return problem.Code == testFailed && len(p.Tests) > 0
	})
}

func (p policyResult) passed() (passed int) {
	for _, test := range p.Tests {
		if test.Passed {
			passed++
		}
	}
	return passed
}

func (c *command) printResults(r results, verbose bool, coverage int) {
	table := tabwriter.NewWriter(c.host.Out, 0, 0, 2, ' ', 0)
	for _, p := range r.Policies {
		word, reached := "PASS", "-"
		if len(p.broken()) > 0 || p.passed() < len(p.Tests) {
			word = "FAIL"
		}
		if p.Coverage != nil && len(p.Tests) > 0 {
			reached = fmt.Sprintf("%d%%", *p.Coverage)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d/%d\t%s\n", word, p.Name, p.passed(), len(p.Tests), reached)
		more := p.details(verbose)
		if more != "" {
			_ = table.Flush() // the error messages have no columns
			_, _ = fmt.Fprintln(c.host.Out, indent(more, "    "))
		}
	}
	_ = table.Flush()
	if r.err(coverage) == nil {
		c.printf("PASS: %d/%d", r.Passed, r.Passed)
	}
}

// details describes a policy beyond its line in the table.
func (p policyResult) details(verbose bool) string {
	var out strings.Builder
	for _, test := range p.Tests {
		switch {
		case !test.Passed:
			fmt.Fprintf(&out, "%s: %s: %s\n", test.At, test.Name, test.Failure)
		case verbose:
			fmt.Fprintf(&out, "%s: %s: passed\n", test.At, test.Name)
		}
		if test.Output != "" && (verbose || !test.Passed) {
			fmt.Fprintln(&out, indent(test.Output, "    | "))
		}
	}
	for _, problem := range p.broken() {
		fmt.Fprintln(&out, problem)
	}
	return out.String()
}

// err returns an error if a policy does not work, or a test failed.
func (r results) err(coverage int) error {
	var broken, low []string
	for _, p := range r.Policies {
		if len(p.broken()) > 0 {
			broken = append(broken, p.Name)
		} else if p.Coverage != nil && int(*p.Coverage) < coverage {
			low = append(low, p.Name)
		}
	}
	all := r.Passed + r.Failed
	switch {
	case r.Failed > 0:
		return rejectedError{fmt.Errorf("FAIL: %d of %s", r.Failed, counted(all, "test fails", "tests fail"))}
	case len(broken) > 0:
		return rejectedError{fmt.Errorf("FAIL: not tested, because of the problems above: %s", strings.Join(broken, ", "))}
	case len(low) > 0:
		return rejectedError{fmt.Errorf("FAIL: the tests reach less than %d%% of %s", coverage, strings.Join(low, ", "))}
	}
	return nil
}
