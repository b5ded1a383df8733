package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/controllers/events"
	"github.com/portico-io/portico/policies/engine"
)

const (
	rules   = "package scheduling.x\n\ndeny contains {\"code\": \"No\", \"msg\": \"no\"} if input.object.kind == \"Service\"\n"
	tests   = "package scheduling.x_test\n\nimport data.scheduling.x\n\ntest_no if count(x.deny) == 1 with input as {\"object\": {\"kind\": \"Service\"}}\n"
	failing = "package scheduling.x_test\n\nimport data.scheduling.x\n\ntest_no if count(x.deny) == 2 with input as {\"object\": {\"kind\": \"Service\"}}\n"
	broken  = "package scheduling.x\n\ndeny contains {\"code\": \"No\", \"msg\": \"no\"} if input.objct.kind == \"Service\"\n"
)

func written(modules ...string) *policyv1alpha1.Policy {
	policy := &policyv1alpha1.Policy{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 3},
		Spec:       policyv1alpha1.PolicySpec{Type: policyv1alpha1.Scheduling, FailurePolicy: policyv1alpha1.Fail, Modules: map[string]string{"x.rego": modules[0]}},
	}
	if len(modules) > 1 {
		policy.Spec.Modules["x_test.rego"] = modules[1]
	}
	return policy
}

// conditions returns the conditions of a policy, as type=status/reason.
func conditions(status policyv1alpha1.PolicyStatus) map[string]string {
	out := map[string]string{}
	for _, c := range status.Conditions {
		out[c.Type] = string(c.Status) + "/" + c.Reason
	}
	return out
}

func TestDescribe(t *testing.T) {
	good := written(rules, tests)
	cases := map[string]struct {
		reason   string
		forms    []*policyv1alpha1.Policy // in this order
		want     map[string]string
		revision string
		summary  string
		message  string
	}{
		"Good": {
			reason:   "The policy in spec is in force.",
			forms:    []*policyv1alpha1.Policy{good},
			want:     map[string]string{"Ready": "True/Active", "Compiled": "True/Compiled", "TestsPassed": "True/Passed"},
			revision: engine.Revision(good.Spec), summary: "1/1", message: "the policy in spec is in force",
		},
		"NoTests": {
			reason:   "Without tests, TestsPassed is unknown.",
			forms:    []*policyv1alpha1.Policy{written(rules)},
			want:     map[string]string{"Ready": "True/Active", "Compiled": "True/Compiled", "TestsPassed": "Unknown/NoTests"},
			revision: engine.Revision(written(rules).Spec), summary: "0/0", message: "the policy in spec is in force",
		},
		"LastGood": {
			reason:   "A revision that does not compile does not replace the last good one.",
			forms:    []*policyv1alpha1.Policy{good, written(broken, tests)},
			want:     map[string]string{"Ready": "False/LastGoodServing", "Compiled": "False/NotCompiled", "TestsPassed": "Unknown/NotCompiled"},
			revision: engine.Revision(good.Spec), message: "revision " + engine.Revision(good.Spec) + " is in force, because the policy in spec does not work: x.rego:3:",
		},
		"FailingTests": {
			reason:   "A revision with failing tests does not replace the last good one.",
			forms:    []*policyv1alpha1.Policy{good, written(rules, failing)},
			want:     map[string]string{"Ready": "False/LastGoodServing", "Compiled": "True/Compiled", "TestsPassed": "False/Failed"},
			revision: engine.Revision(good.Spec), summary: "0/1", message: "test_no",
		},
		"NeverGood": {
			reason:  "Without a working revision, failurePolicy applies.",
			forms:   []*policyv1alpha1.Policy{written(broken)},
			want:    map[string]string{"Ready": "False/Broken", "Compiled": "False/NotCompiled", "TestsPassed": "Unknown/NotCompiled"},
			message: "no revision works, and failurePolicy Fail applies: x.rego:3:",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := engine.New(engine.Options{})
			for _, form := range tc.forms {
				e.Apply(t.Context(), form)
			}
			policy := tc.forms[len(tc.forms)-1].DeepCopy()
			state, _ := e.Policy("x")
			describe(policy, state, "")
			if diff := cmp.Diff(tc.want, conditions(policy.Status)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			got := policy.Status
			summary := ""
			if got.Tests != nil {
				summary = got.Tests.Summary
			}
			if got.Revision != tc.revision || summary != tc.summary || got.Engine != engine.Version || got.ObservedGeneration != 3 {
				t.Errorf("%s\nstatus is %+v", tc.reason, got)
			}
			if message := meta.FindStatusCondition(got.Conditions, policyv1alpha1.Ready).Message; !strings.Contains(message, tc.message) {
				t.Errorf("%s\nmessage %q, want %q", tc.reason, message, tc.message)
			}
			twice := policy.DeepCopy()
			describe(twice, state, "")
			if diff := cmp.Diff(policy, twice); diff != "" {
				t.Errorf("describing the policy twice changes its status: %s", diff)
			}
		})
	}
}

func TestCustomized(t *testing.T) {
	e := engine.New(engine.Options{})
	policy := written(rules, tests)
	e.Apply(t.Context(), policy)
	state, _ := e.Policy("x")
	for name, tc := range map[string]struct{ annotation, shipped, want string }{
		"NotOurs":      {"", "", ""},
		"AsShipped":    {state.Revision, state.Revision, "False/AsShipped"},
		"Older":        {state.Revision, "000000000000", "False/AsShipped"},
		"Edited":       {"000000000000", "000000000000", "True/Edited"},
		"SomebodyElse": {"", "000000000000", "True/Edited"},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy.DeepCopy()
			p.Annotations = map[string]string{policyv1alpha1.EmbeddedRevisionAnnotation: tc.annotation}
			p.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.Customized, Status: metav1.ConditionTrue}}
			describe(p, state, tc.shipped)
			if got := conditions(p.Status)[policyv1alpha1.Customized]; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStatusEvents(t *testing.T) {
	status := func(revision string, ready metav1.ConditionStatus, reason, message string) policyv1alpha1.PolicyStatus {
		return policyv1alpha1.PolicyStatus{Revision: revision, Conditions: []metav1.Condition{{Type: policyv1alpha1.Ready, Status: ready, Reason: reason, Message: message}}}
	}
	good, newer := status("a", "True", "Active", "decides"), status("b", "True", "Active", "decides")
	bad, worse := status("a", "False", "LastGoodServing", "x.rego:3: no"), status("a", "False", "LastGoodServing", "x.rego:4: no")
	cases := map[string]struct {
		before, after policyv1alpha1.PolicyStatus
		want          []events.Event
	}{
		"Nothing": {},
		"First":   {after: good, want: []events.Event{{Reason: "Active", Note: "revision a is in force"}}},
		"Same":    {before: good, after: good},
		"Changed": {before: good, after: newer, want: []events.Event{{Reason: "Active", Note: "revision b is in force"}}},
		"Broken":  {before: good, after: bad, want: []events.Event{{Warning: true, Reason: "LastGoodServing", Note: "x.rego:3: no"}}},
		"Still":   {before: bad, after: bad},
		"Worse":   {before: bad, after: worse, want: []events.Event{{Warning: true, Reason: "LastGoodServing", Note: "x.rego:4: no"}}},
		"Mended":  {before: bad, after: good, want: []events.Event{{Reason: "Active", Note: "revision a is in force"}}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, statusEvents(tc.before, tc.after)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
