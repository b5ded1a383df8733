package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
)

// manyNumbers is a set of 1500 numbers, without numbers.range.
const manyNumbers = "many := {x | some i, _ in split(sprintf(\"%1500d\", [0]), \" \"); x := i}\n\n"

// hostile policies compile, and would take minutes and gigabytes of memory.
var hostile = map[string]string{
	"loop": manyNumbers + "deny contains {\"code\": \"A\", \"msg\": \"no\"} if {\n\tsome a in many\n\tsome b in many\n\tsome c in many\n\t((a * b) * c) == -1\n}\n",
	"explosion": manyNumbers + "bomb := {[a, b, c] | some a in many; some b in many; some c in many}\n\n" +
		"deny contains {\"code\": \"A\", \"msg\": \"no\"} if count(bomb) > 0\n",
	"string": "a := sprintf(\"%1000000d\", [1])\n\nb := concat(\"\", [a, a, a, a, a, a, a, a, a, a])\n\nc := concat(\"\", [b, b, b, b, b, b, b, b, b, b])\n\n" +
		"deny contains {\"code\": \"A\", \"msg\": \"no\"} if {\n\tsome i in split(b, \"\")\n\tcontains(c, sprintf(\"%s-%s\", [i, c]))\n}\n",
}

// TestHostilePolicies: a hostile policy is stopped, and its failurePolicy applies.
// Other policies are evaluated in the meantime.
func TestHostilePolicies(t *testing.T) {
	deployments := match(policyv1alpha1.PolicyMatch{Kinds: []string{"Deployment"}})
	for name, body := range hostile {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			// Two workers: the hostile policy occupies one of them for a while.
			e := New(Options{Timeout: time.Second, MaxConcurrent: 2})
			apply(t, e, policy("hostile", body, deployments), policy("peaceful", denies("Peaceful")))

			answered := make(chan *Decision, 1)
			go func() { answered <- e.Decide(ctx, scheduling()) }()
			service := scheduling()
			service.Request.Kind.Kind = "Service"
			served := 0
			var d *Decision
			for d == nil {
				select {
				case d = <-answered:
				default:
					if diff := cmp.Diff([]string{"peaceful:Peaceful"}, codes(e.Decide(ctx, service))); diff != "" {
						t.Fatal(diff)
					}
					served++
				}
			}
			if diff := cmp.Diff([]string{"hostile:" + CodePolicyTimeout, "peaceful:Peaceful"}, codes(d)); diff != "" {
				t.Error(diff)
			}
			if served == 0 {
				t.Error("no request was served while the hostile policy ran")
			}
			t.Logf("stopped after %v, %d other requests served", d.Evaluations[0].Duration.Round(time.Millisecond), served)
		})
	}
}

// TestRequestDeadline: when the deadline of the request passes, the failurePolicy of
// every policy applies.
func TestRequestDeadline(t *testing.T) {
	e := New(Options{Timeout: time.Hour, MaxConcurrent: 1})
	apply(t, e, policy("hostile", hostile["loop"]), policy("ignored", denies("A"), onFailure(policyv1alpha1.Ignore)))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	d := e.Decide(ctx, scheduling())
	if diff := cmp.Diff([]string{"hostile:" + CodePolicyTimeout}, codes(d)); diff != "" {
		t.Error(diff)
	}
	if len(d.Warnings) != 1 || d.Warnings[0].Policy != "ignored" {
		t.Errorf("warnings: %v", d.Warnings)
	}
}

// TestHostileTest: a test that loops is stopped, and is a problem of the policy.
func TestHostileTest(t *testing.T) {
	p := policy("p", denies("A")+"\n"+manyNumbers, module("p_test.rego",
		header+"test_loops if {\n\tsome a in many\n\tsome b in many\n\tsome c in many\n\t((a * b) * c) == -1\n}\n"))
	if e := New(Options{}); e.Check(context.Background(), p).OK() {
		t.Error("a policy with an endless test was accepted")
	}
}

// FuzzCheck compiles any text. Problems have a position, and a policy without problems
// can be evaluated.
func FuzzCheck(f *testing.F) {
	for _, file := range brokenFiles(f) {
		f.Add(readBroken(f, file).modules["example.rego"])
	}
	for _, body := range hostile {
		f.Add(header + body)
	}
	for _, p := range shipped(f) {
		for _, source := range p.Spec.Modules {
			f.Add(source)
		}
	}
	f.Fuzz(func(t *testing.T, source string) {
		p := policy("example", "")
		p.Spec.Modules = map[string]string{"example.rego": source}
		withstands(t, p)
	})
}

// FuzzPolicy checks any policy that the API server accepts.
func FuzzPolicy(f *testing.F) {
	for _, p := range append(shipped(f), policy("odd", denies("A"), weight(1000), onFailure(policyv1alpha1.Ignore), action(policyv1alpha1.Audit), match(policyv1alpha1.PolicyMatch{
		Kinds: []string{"Deployment"}, ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}},
	}))) {
		raw, err := json.Marshal(p.Spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"type": "Scheduling", "parameters": [1], "modules": {"": ""}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := policy("example", "")
		p.Spec = policyv1alpha1.PolicySpec{}
		if json.Unmarshal(raw, &p.Spec) != nil {
			return
		}
		withstands(t, p)
	})
}

// withstands checks that an engine describes the problems of a policy, and that a
// policy with problems allows nothing that it might deny.
func withstands(t *testing.T, p *policyv1alpha1.Policy) {
	t.Helper()
	e := New(Options{Timeout: 20 * time.Millisecond})
	report := e.Apply(context.Background(), p)
	for _, problem := range append(report.Problems, report.Warnings...) {
		if problem.Message == "" || problem.String() == "" || problem.Line < 0 || problem.Column < 0 {
			t.Errorf("a problem without words or place: %#v", problem)
		}
	}
	strict := p.Spec.Type == policyv1alpha1.Scheduling && p.Spec.Match == nil &&
		(p.Spec.Action == "" || p.Spec.Action == policyv1alpha1.Deny) && (p.Spec.FailurePolicy == "" || p.Spec.FailurePolicy == policyv1alpha1.Fail)
	d := e.Decide(context.Background(), scheduling(target("eu", nil)))
	if !report.OK() && d.Allowed() && strict {
		t.Errorf("a policy that is broken allows: %v", report.Err())
	}
}

// rules is a policy of usual size, with five rules over all targets.
const rules = `exclude contains {"target": t.metadata.name, "code": "Region", "msg": "too far"} if {
	some t in input.targets
	t.metadata.labels.region != input.object.metadata.labels.region
}

exclude contains {"target": t.metadata.name, "code": "Env", "msg": sprintf("is of %s", [t.metadata.labels.env])} if {
	some t in input.targets
	t.metadata.labels.env == "test"
}

exclude contains {"target": t.metadata.name, "code": "Down", "msg": "is not reachable"} if {
	some t in input.targets
	some c in t.status.conditions
	c.type == "TargetReachable"
	c.status != "True"
}

deny contains {"code": "Registry", "msg": sprintf("image %s", [c.image])} if {
	some c in input.object.spec.template.spec.containers
	not startswith(c.image, "registry.example.org/")
}

score[t.metadata.name] := 50 if {
	some t in input.targets
	t.metadata.labels.zone == "a"
}
`

func benchTargets(n int) []*workloadv1alpha1.KubernetesTarget {
	targets := make([]*workloadv1alpha1.KubernetesTarget, n)
	for i := range targets {
		targets[i] = target(fmt.Sprintf("target-%04d", i), map[string]string{
			"region": []string{"eu", "us"}[i%2], "env": []string{"prod", "dev", "test"}[i%3], "zone": []string{"a", "b"}[i%2], "one": fmt.Sprint(i % 100),
		})
	}
	return targets
}

func benchPolicies(n int) []*policyv1alpha1.Policy {
	policies := make([]*policyv1alpha1.Policy, n)
	for i := range policies {
		policies[i] = policy(fmt.Sprintf("policy-%03d", i), rules)
	}
	return policies
}
