package engine

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/input"
)

func TestDecide(t *testing.T) {
	eu := target("eu", map[string]string{"region": "eu"})
	us := target("us", map[string]string{"region": "us"})
	otherTeam := policyv1alpha1.PolicyMatch{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "bank"}}}
	thisNamespace := policyv1alpha1.PolicyMatch{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "shop"}}}
	services := policyv1alpha1.PolicyMatch{Kinds: []string{"Service"}}
	labelled := policyv1alpha1.PolicyMatch{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	fails := "deny contains {\"code\": \"A\", \"msg\": \"no\"}\n\ndeny contains {\"code\": \"Big\", \"msg\": \"no\"} if units.parse_bytes(input.object.metadata.name) > 10\n"

	tests := map[string]struct {
		reason   string
		policies []*policyv1alpha1.Policy
		old      map[string]string
		selector labels.Selector
		desired  Decision
	}{
		"NoPolicies": {
			reason: "Without policies a request is allowed.",
		},
		"Union": {
			reason:   "The denials of all policies are returned, ordered by policy.",
			policies: []*policyv1alpha1.Policy{policy("b", denies("B")), policy("a", denies("A"))},
			desired:  Decision{Denied: []Finding{{Policy: "a", Code: "A", Message: "no"}, {Policy: "b", Code: "B", Message: "no"}}},
		},
		"Actions": {
			reason: "Action Warn turns all findings into warnings, and Audit records them. Neither excludes targets or scores.",
			policies: []*policyv1alpha1.Policy{
				policy("audit", denies("A")+"score.eu := 10\n", action(policyv1alpha1.Audit)),
				policy("warn", denies("W")+`exclude contains {"target": "eu", "code": "E", "msg": "no"}`, action(policyv1alpha1.Warn)),
			},
			desired: Decision{
				Recorded: []Finding{{Policy: "audit", Code: "A", Message: "no"}},
				Warnings: []Finding{{Policy: "warn", Code: "E", Message: "no", Target: "eu"}, {Policy: "warn", Code: "W", Message: "no"}},
			},
		},
		"Targets": {
			reason: "Exclusions are joined, all requirements must be met, and scores are summed by weight.",
			policies: []*policyv1alpha1.Policy{
				policy("near", `score[name] := 50 if some name in [target.metadata.name | some target in input.targets]`, weight(2)),
				policy("old", `score[target.metadata.name] := 10 if { some target in input.targets; target.metadata.labels.region == "eu" }`),
				policy("region", `require contains {"key": "region", "operator": "In", "values": ["eu"]}`),
				policy("us", `exclude contains {"target": target.metadata.name, "code": "Far", "msg": "too far"} if { some target in input.targets; target.metadata.labels.region == "us" }`),
			},
			desired: Decision{
				Excluded: []Finding{
					{Policy: "region", Code: CodeRequired, Target: "us", Message: "wants region in (eu)"},
					{Policy: "us", Code: "Far", Target: "us", Message: "too far"},
				},
				Scores: map[string]float64{"eu": 110, "us": 100},
			},
		},
		"Selector": {
			reason:   "A policy does not see targets that the selector does not match.",
			selector: labels.SelectorFromSet(labels.Set{"region": "us"}),
			policies: []*policyv1alpha1.Policy{policy("see", `score[target.metadata.name] := 1 if some target in input.targets`)},
			desired:  Decision{Scores: map[string]float64{"us": 1}},
		},
		"Field": {
			reason:   "A finding may name a field, and parameters are passed to the policy.",
			policies: []*policyv1alpha1.Policy{policy("few", `deny contains {"code": "Few", "msg": sprintf("at most %d", [input.parameters.max]), "field": "spec.replicas"} if input.object.spec.replicas > input.parameters.max`, parameters(map[string]any{"max": 1}))},
			desired:  Decision{Denied: []Finding{{Policy: "few", Code: "Few", Message: "at most 1", Field: "spec.replicas"}}},
		},
		"Match": {
			reason: "A policy that does not match is not evaluated.",
			policies: []*policyv1alpha1.Policy{
				policy("bank", denies("A"), match(otherTeam)), policy("service", denies("A"), match(services)),
				policy("gold", denies("A"), match(labelled)), policy("shop", denies("A"), match(thisNamespace)),
			},
			desired: Decision{Denied: []Finding{{Policy: "shop", Code: "A", Message: "no"}}},
		},
		"MatchOldLabels": {
			reason:   "A policy matches by the labels of the old object too.",
			old:      map[string]string{"tier": "gold"},
			policies: []*policyv1alpha1.Policy{policy("gold", denies("A"), match(labelled))},
			desired:  Decision{Denied: []Finding{{Policy: "gold", Code: "A", Message: "no"}}},
		},
		"ErrorFails": {
			reason:   "An error of a policy denies the request, and its other findings do not count.",
			policies: []*policyv1alpha1.Policy{policy("errs", fails)},
			desired:  Decision{Denied: []Finding{{Policy: "errs", Code: CodePolicyError}}},
		},
		"ErrorIgnored": {
			reason:   "With failurePolicy Ignore an error is a warning, and other policies count.",
			policies: []*policyv1alpha1.Policy{policy("errs", fails, onFailure(policyv1alpha1.Ignore)), policy("other", denies("A"))},
			desired: Decision{
				Denied:   []Finding{{Policy: "other", Code: "A", Message: "no"}},
				Warnings: []Finding{{Policy: "errs", Code: CodePolicyError}},
			},
		},
		"ErrorAudited": {
			reason:   "An error of a policy with action Audit is only recorded.",
			policies: []*policyv1alpha1.Policy{policy("errs", fails, action(policyv1alpha1.Audit))},
			desired:  Decision{Recorded: []Finding{{Policy: "errs", Code: CodePolicyError}}},
		},
		"ScoreOutOfRange": {
			reason:   "A score that the compiler cannot check is checked at evaluation.",
			policies: []*policyv1alpha1.Policy{policy("high", `score[target.metadata.name] := input.parameters.much if some target in input.targets`, parameters(map[string]any{"much": 101}))},
			desired:  Decision{Denied: []Finding{{Policy: "high", Code: CodePolicyError}}},
		},
		"WrongElement": {
			reason:   "An element of a set is checked at evaluation.",
			policies: []*policyv1alpha1.Policy{policy("odd", `deny contains input.parameters.finding`, parameters(map[string]any{"finding": map[string]any{"code": "A", "mesg": "no"}}))},
			desired:  Decision{Denied: []Finding{{Policy: "odd", Code: CodePolicyError}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			apply(t, e, tc.policies...)
			q := scheduling(us, eu)
			q.Selector = tc.selector
			if tc.old != nil {
				q.OldObject = deployment(tc.old)
			}
			got := e.Decide(context.Background(), q)
			// The text after the code is the error of OPA.
			for _, list := range [][]Finding{got.Denied, got.Warnings, got.Recorded} {
				for i := range list {
					if list[i].Code == CodePolicyError {
						if !strings.HasPrefix(list[i].Message, "the policy could not be evaluated: ") {
							t.Errorf("message: %s", list[i].Message)
						}
						list[i].Message = ""
					}
				}
			}
			ignore := cmpopts.IgnoreFields(Decision{}, "Revision", "Evaluations", "Required")
			if diff := cmp.Diff(&tc.desired, got, ignore, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDecidePublish(t *testing.T) {
	e := New(Options{})
	apply(t, e, policy("one", "", func(p *policyv1alpha1.Policy) {
		p.Spec.Type = policyv1alpha1.Publish
		p.Spec.Modules = map[string]string{"one.rego": `package publish.one
deny contains {"code": "Twice", "msg": other.metadata.name} if {
	some other in input.existing
	other.cluster.version == input.cluster.version
}`}
	}))
	q := Question{Type: policyv1alpha1.Publish, Question: input.Question{
		Target: target("new", nil), Existing: []*workloadv1alpha1.KubernetesTarget{target("old", nil)},
	}}
	got := e.Decide(context.Background(), q)
	if want := []Finding{{Policy: "one", Code: "Twice", Message: "old"}}; !cmp.Equal(want, got.Denied) {
		t.Error(cmp.Diff(want, got.Denied))
	}
	q.Type = policyv1alpha1.Scheduling
	if got := e.Decide(context.Background(), q); !got.Allowed() {
		t.Errorf("a Publish policy answered a question of scheduling: %v", got.Denied)
	}
}

func TestFindingForPeople(t *testing.T) {
	for want, f := range map[string]Finding{
		"policy quota: TooMany: at most 3 (spec.replicas)": {Policy: "quota", Code: "TooMany", Message: "at most 3", Field: "spec.replicas"},
		"policy region: Far: target us: too far":           {Policy: "region", Code: "Far", Message: "too far", Target: "us"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPrintAndTrace(t *testing.T) {
	var printed, trace strings.Builder
	e := New(Options{Print: &printed})
	apply(t, e, policy("talks", "deny contains {\"code\": \"A\", \"msg\": \"no\"} if {\n\tprint(\"name is\", input.object.metadata.name)\n\tinput.object.spec.replicas > 5\n}\n"))
	q := scheduling()
	q.Trace = func(policy string) io.Writer {
		if policy != "talks" {
			t.Errorf("traces %s", policy)
		}
		return &trace
	}
	e.Decide(context.Background(), q)
	if got, want := printed.String(), "policy talks: talks.rego:6: name is web\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	const fails = "talks.rego:7     | Fail"
	if !strings.Contains(trace.String(), fails) || strings.Contains(trace.String(), "Unify") || strings.Contains(trace.String(), "Exit") {
		t.Errorf("the trace has other expressions than the failed one:\n%s", trace.String())
	}
	some := trace.String()
	trace.Reset()
	q.TraceAll = true
	e.Decide(context.Background(), q)
	if !strings.Contains(trace.String(), fails) || len(trace.String()) <= len(some) {
		t.Errorf("the whole trace is not longer:\n%s", trace.String())
	}
}
