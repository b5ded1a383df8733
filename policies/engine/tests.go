package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/tester"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// testBudget limits the time of all tests of a policy.
const testBudget = 2 * time.Second

// Test is the result of one of a policy's own tests.
type Test struct {
	// Name of the test, such as data.scheduling.quota.test_small_is_allowed.
	Name string
	// File and Line of the test.
	File string
	Line int
	// Failure is the reason of the failure; empty if the test passed.
	Failure string
	// Output of the test's print calls.
	Output string
	// Duration of the test.
	Duration time.Duration
}

// runTests compiles the policy with its tests, and runs the tests.
func runTests(ctx context.Context, t policyv1alpha1.PolicyType, all, libraries modules, text sources) (tests []Test, coverage float64, problems []Problem) {
	defer func() {
		if r := recover(); r != nil {
			problems = append(problems, Problem{Code: ast.CompileErr, Message: fmt.Sprintf("compiling the tests panicked: %v", r)})
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, testBudget)
	defer cancel()
	c := newCompiler(t)
	tracer := cover.New()
	// An error of a built-in function fails the test, as it fails a decision.
	results, err := tester.NewRunner().
		SetCompiler(c.Compiler).SetDefaultRegoVersion(ast.RegoV1).
		RaiseBuiltinErrors(true).
		CapturePrintOutput(true).
		SetCoverageQueryTracer(tracer).SetCoverageRuns(nil).
		SetTimeout(testBudget).
		SetParallel(1).
		SetModules(all.with(libraries)).
		RunTests(ctx, nil)
	if err != nil {
		if found := c.problems(text); len(found) > 0 {
			return nil, 0, found
		}
		return nil, 0, text.problemsOf(err, "")
	}
	problems = c.problems(text)
	unsound := len(problems) > 0 // there are problems that explain failed tests
	for result := range results {
		// The tests of a Library are run with the Library.
		if result == nil || result.Skip || result.Location == nil || text[result.Location.File] == "" {
			continue
		}
		test := Test{
			Name: result.Package + "." + result.Name, File: result.Location.File, Line: result.Location.Row,
			Output: string(result.Output), Duration: result.Duration,
		}
		switch {
		case result.Error != nil:
			test.Failure = oneLine(result.Error.Error())
		case result.Fail:
			test.Failure = "does not hold" + failedCases(result.SubResults)
		}
		tests = append(tests, test)
		if test.Failure == "" || unsound {
			continue
		}
		message := fmt.Sprintf("%s: %s", result.Name, test.Failure)
		if test.Output != "" {
			message += "; it printed: " + oneLine(test.Output)
		}
		problems = append(problems, text.problemAt(result.Location, "policy_test_failed", "%s", message))
	}
	if ctx.Err() != nil {
		problems = append(problems, Problem{Code: "policy_test_failed", Message: fmt.Sprintf("the tests together took longer than %v", testBudget)})
	}
	slices.SortFunc(tests, func(a, b Test) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name))
	})
	return tests, tracer.Report(all.rules()).Coverage, problems
}

func failedCases(cases tester.SubResultMap) string {
	var failed []string
	for name, result := range cases {
		if result.Fail {
			failed = append(failed, name)
		}
	}
	if len(failed) == 0 {
		return ""
	}
	slices.Sort(failed)
	return " for " + strings.Join(failed, ", ")
}

func oneLine(text string) string {
	const maxLength = 300
	return policies.Shorten(strings.Join(strings.Fields(text), " "), maxLength)
}

// summary counts the tests for the status.
func summary(tests []Test, coverage float64) *policyv1alpha1.PolicyTests {
	out := &policyv1alpha1.PolicyTests{Coverage: int32(math.Floor(coverage))}
	for _, test := range tests {
		if test.Failure == "" {
			out.Passed++
		} else {
			out.Failed++
		}
	}
	out.Summary = fmt.Sprintf("%d/%d", out.Passed, len(tests))
	return out
}
