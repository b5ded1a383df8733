package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
)

// codes returns the codes of the denials in a decision.
func codes(d *Decision) []string {
	var out []string
	for _, f := range d.Denied {
		out = append(out, f.Policy+":"+f.Code)
	}
	return out
}

func TestLastGoodForm(t *testing.T) {
	ctx := context.Background()
	e := New(Options{})
	good := policy("p", denies("Good"))
	apply(t, e, good, policy("q", denies("Other")))

	report := e.Apply(ctx, policy("p", "deny contains {\"code\": \"Bad\"}\n"))
	if report.OK() {
		t.Fatal("a finding without a message was accepted")
	}
	if diff := cmp.Diff([]string{"p:Good", "q:Other"}, codes(e.Decide(ctx, scheduling()))); diff != "" {
		t.Errorf("the last good revision is not in force:\n%s", diff)
	}
	state, _ := e.Policy("p")
	if state.OK() || state.Serving != Revision(good.Spec) || state.Revision == state.Serving {
		t.Errorf("the state lacks the failure: %+v", state)
	}

	apply(t, e, policy("p", denies("Better")))
	if diff := cmp.Diff([]string{"p:Better", "q:Other"}, codes(e.Decide(ctx, scheduling()))); diff != "" {
		t.Errorf("the corrected revision is not in force:\n%s", diff)
	}
	e.Remove(ctx, "p")
	if diff := cmp.Diff([]string{"q:Other"}, codes(e.Decide(ctx, scheduling()))); diff != "" {
		t.Errorf("a policy that was removed decides:\n%s", diff)
	}
}

func TestBrokenFromTheStart(t *testing.T) {
	ctx := context.Background()
	bad := "deny contains {\"code\": \"Bad\"}\n"
	services := policyv1alpha1.PolicyMatch{Kinds: []string{"Service"}}
	for name, tc := range map[string]struct {
		policy                   *policyv1alpha1.Policy
		denied, warned, recorded int
	}{
		"Fail":     {policy: policy("p", bad), denied: 1},
		"Ignore":   {policy: policy("p", bad, onFailure(policyv1alpha1.Ignore)), warned: 1},
		"Warn":     {policy: policy("p", bad, action(policyv1alpha1.Warn)), warned: 1},
		"Audit":    {policy: policy("p", bad, action(policyv1alpha1.Audit)), recorded: 1},
		"NoMatch":  {policy: policy("p", bad, match(services))},
		"NoModule": {policy: policy("p", "", func(p *policyv1alpha1.Policy) { p.Spec.Modules = nil }), denied: 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			e.Apply(ctx, tc.policy)
			d := e.Decide(ctx, scheduling())
			if len(d.Denied) != tc.denied || len(d.Warnings) != tc.warned || len(d.Recorded) != tc.recorded {
				t.Errorf("denied %v, warned %v, recorded %v", d.Denied, d.Warnings, d.Recorded)
			}
			for _, f := range append(append(d.Denied, d.Warnings...), d.Recorded...) {
				if f.Policy != "p" || f.Code != CodePolicyBroken {
					t.Errorf("finding: %v", f)
				}
			}
		})
	}
}

func TestLibraryMendsAndBreaks(t *testing.T) {
	ctx := context.Background()
	e := New(Options{})
	user := policy("user", "import data.lib.limits\n\ndeny contains {\"code\": \"Many\", \"msg\": \"no\"} if input.object.spec.replicas > limits.most\n",
		module("user_test.rego", "package scheduling.example_test\n\nimport data.scheduling.example\n\ntest_two_are_many if count(example.deny) == 1 with input as {\"object\": {\"spec\": {\"replicas\": 2}}}\n"))
	limits := library("limits", "import data.lib.numbers\n\nmost := numbers.one\n")
	numbers := library("numbers", "one := 1\n")
	// In any order, each policy fixes the problems of the policies that import it.
	for _, p := range []*policyv1alpha1.Policy{user, limits} {
		if e.Apply(ctx, p).OK() {
			t.Fatalf("%s was accepted without its library", p.Name)
		}
	}
	apply(t, e, numbers)
	for _, state := range e.Policies() {
		if err := state.Err(); err != nil {
			t.Fatalf("%s: %v", state.Policy, err)
		}
	}
	state, _ := e.Policy("user")
	if diff := cmp.Diff([]string{"lib-limits", "lib-numbers"}, state.Libraries); diff != "" {
		t.Errorf("libraries:\n%s", diff)
	}

	for name, change := range map[string]*policyv1alpha1.Policy{
		"a rule that is gone": library("limits", "more := 1\n"),
		"a test that fails":   library("numbers", "one := 2\n"),
	} {
		report := e.Check(ctx, change)
		if report.OK() || !strings.Contains(report.Err().Error(), "policy user would break") {
			t.Errorf("%s: %v", name, report.Err())
		}
	}
	if report := e.CheckRemoval(ctx, "lib-numbers"); report.OK() {
		t.Error("a library that is used can be removed")
	}
	if report := e.CheckRemoval(ctx, "user"); !report.OK() {
		t.Errorf("a policy cannot be removed: %v", report.Err())
	}

	// A user applies the library nevertheless: the decisions do not change.
	e.Apply(ctx, library("limits", "more := 1\n"))
	if diff := cmp.Diff([]string{"user:Many"}, codes(e.Decide(ctx, scheduling()))); diff != "" {
		t.Errorf("the last good revision is not in force:\n%s", diff)
	}
	if state, _ := e.Policy("user"); state.OK() {
		t.Error("nothing says that the policy is broken")
	}
	apply(t, e, limits)
	if state, _ := e.Policy("user"); !state.OK() {
		t.Errorf("the library does not mend its user: %v", state.Err())
	}
}

func TestTwoLibrariesWithOnePackage(t *testing.T) {
	e := New(Options{})
	apply(t, e, library("limits", "most := 1\n"))
	other := library("limits", "most := 2\n")
	other.Name = "other"
	if e.Apply(context.Background(), other).OK() {
		t.Error("two libraries have one package")
	}
}

func TestWarnings(t *testing.T) {
	e := New(Options{})
	p := policy("p", "", module("p.rego", "package scheduling.p\n\ndeny contains {\"code\": \"A\", \"msg\": \"no\"} if {\n\tnot input.object.metadata.labels.team\n}\n"))
	report := e.Check(context.Background(), p)
	if !report.OK() || !report.Compiled() {
		t.Fatal(report.Err())
	}
	var got []string
	for _, w := range report.Warnings {
		got = append(got, fmt.Sprintf("%s:%d %s", w.File, w.Line, w.Code))
	}
	if diff := cmp.Diff([]string{":0 policy_no_tests", "p.rego:4 policy_negation"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRevision(t *testing.T) {
	implicit, explicit := policy("p", denies("A")), policy("p", denies("A"), action(policyv1alpha1.Deny), onFailure(policyv1alpha1.Fail))
	if Revision(implicit.Spec) != Revision(explicit.Spec) {
		t.Error("a default of the API server changes the revision")
	}
	if Revision(implicit.Spec) == Revision(policy("p", denies("B")).Spec) {
		t.Error("another content has the same revision")
	}
}

// TestDecisionsWhilePoliciesChange: while policies change, every decision uses one
// complete set.
func TestDecisionsWhilePoliciesChange(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	e := New(Options{MaxConcurrent: 4, Timeout: time.Minute})
	round := func(n int) []*policyv1alpha1.Policy {
		return []*policyv1alpha1.Policy{policy("a", denies(fmt.Sprintf("Round%d", n))), policy("b", denies(fmt.Sprintf("Round%d", n)))}
	}
	e.Replace(ctx, round(0))
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			q := scheduling(target("eu", nil), target(fmt.Sprintf("t%d", worker), nil))
			for ctx.Err() == nil {
				d := e.Decide(context.Background(), q)
				if len(d.Denied) != 2 || d.Denied[0].Code != d.Denied[1].Code {
					t.Errorf("a decision by half a set: %v", d.Denied)
					return
				}
			}
		})
	}
	for n := range 15 {
		e.Replace(ctx, round(n))
		e.Apply(ctx, policy("broken", "deny contains 1\n", action(policyv1alpha1.Audit)))
		e.Policies()
	}
	cancel()
	wg.Wait()
}

func TestTargetTerms(t *testing.T) {
	c := newTargetTerms(2)
	first := c.convert(target("a", nil))
	if c.convert(target("a", nil)).term != first.term {
		t.Error("a target that did not change is converted twice")
	}
	changed := target("a", map[string]string{"env": "dev"})
	changed.ResourceVersion = "2"
	if got := c.convert(changed); got.term == first.term || got.digest == first.digest {
		t.Error("a target that changed is not converted")
	}
	for i := range 20 {
		c.convert(target(fmt.Sprint(i), nil))
	}
	if got := c.byName.Len(); got > 2 {
		t.Errorf("%d targets are kept", got)
	}
}
