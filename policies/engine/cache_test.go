package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
)

// evaluated returns the policies of a decision whose outputs were not reused.
func evaluated(d *Decision) string {
	var names []string
	for _, e := range d.Evaluations {
		if !e.Reused {
			names = append(names, e.Policy)
		}
	}
	return strings.Join(names, " ")
}

// TestReuse evaluates a question, changes one part of it, and evaluates it again. Only
// policies that read the changed part are evaluated.
func TestReuse(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	library := policy("lib-clock", "")
	library.Spec.Type = policyv1alpha1.Library
	library.Spec.Modules = map[string]string{"clock.rego": "package lib.clock\n\nimport rego.v2\n\nhour := time.clock(time.now_ns())[0]\n\nplaced(name) := object.get(input.placed, name, 0)\n"}
	policies := []*policyv1alpha1.Policy{
		library,
		policy("clock", "deny contains {\"code\": \"A\", \"msg\": \"late\"} if time.now_ns() < 0\n"),
		policy("dynamic", "deny contains {\"code\": \"A\", \"msg\": \"no\"} if {\n\tsome key in {\"placed\", \"version\"}\n\tinput[key] == \"v9\"\n}\n"),
		policy("imports", "import data.lib.clock\n\ndeny contains {\"code\": \"A\", \"msg\": \"late\"} if clock.hour > 30\n"),
		policy("libplaced", "import data.lib.clock\n\ndeny contains {\"code\": \"A\", \"msg\": \"many\"} if clock.placed(\"eu\") > 30\n"),
		policy("namespace", "deny contains {\"code\": \"A\", \"msg\": \"no\"} if input.namespace.metadata.labels.env == \"none\"\n"),
		policy("object", denies("Object")),
		policy("placed", "score[t.metadata.name] := 100 - input.placed[t.metadata.name] if some t in input.targets\n"),
		policy("targets", "import input.targets\n\nexclude contains {\"target\": t.metadata.name, \"code\": \"A\", \"msg\": \"no\"} if {\n\tsome t in targets\n\tt.metadata.labels.env == \"dev\"\n}\n"),
		policy("user", "deny contains {\"code\": \"A\", \"msg\": \"no\"} if input.request.user.username == \"eve\"\n"),
		policy("whole", "deny contains {\"code\": \"A\", \"msg\": \"no\"} if {\n\twalk(input, [_, \"forbidden\"])\n}\n"),
	}
	denies := policies[6]
	denies.Spec.Modules["object.rego"] = header + "deny contains {\"code\": \"A\", \"msg\": \"no\"} if input.object.metadata.labels.app == \"none\"\n"
	cases := map[string]struct {
		reason string
		change func(q *Question)
		want   string
	}{
		"Nothing":     {reason: "The same question is answered from the cache.", change: func(*Question) {}, want: ""},
		"Object":      {reason: "Other labels of the object.", change: func(q *Question) { q.Object.SetLabels(map[string]string{"app": "none"}) }, want: "dynamic object whole"},
		"Namespace":   {reason: "Other labels of the namespace.", change: func(q *Question) { q.Namespace.Labels["env"] = "none" }, want: "dynamic namespace whole"},
		"Placed":      {reason: "Another count on a target.", change: func(q *Question) { q.Placed = map[string]int{"eu": 4} }, want: "dynamic imports libplaced placed whole"},
		"User":        {reason: "Another user.", change: func(q *Question) { q.Request.User.Username = "eve" }, want: "dynamic user whole"},
		"Application": {reason: "Another application.", change: func(q *Question) { q.Application.Name = "other" }, want: "dynamic whole"},
		"TargetLabels": {reason: "Another label of a target.", change: func(q *Question) {
			q.Targets = []*workloadv1alpha1.KubernetesTarget{versioned("2", map[string]string{"env": "dev"})}
		}, want: "dynamic placed targets whole"},
		"TargetTouch": {reason: "A target whose new version has no change that policies see.", change: func(q *Question) { q.Targets = []*workloadv1alpha1.KubernetesTarget{versioned("3", nil)} }, want: ""},
		"MoreTargets": {reason: "Another target.", change: func(q *Question) { q.Targets = append(q.Targets, target("us", nil)) }, want: "dynamic placed targets whole"},
		"Time":        {reason: "Another time, which policies that read the clock see.", change: func(q *Question) { q.Now = now.Add(time.Second) }, want: "clock imports libplaced"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := New(Options{Timeout: time.Minute})
			apply(t, e, policies...)
			question := func() Question {
				q := scheduling(versioned("1", nil))
				q.Reuse, q.Now = true, now
				q.Object = q.Object.DeepCopy()
				q.Namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"env": "prod"}}}
				q.Placed = map[string]int{"eu": 3}
				return q
			}
			before := e.Decide(t.Context(), question())
			if got := len(strings.Fields(evaluated(before))); got != len(policies)-1 {
				t.Fatalf("%d policies were evaluated at first: %+v", got, before.Evaluations)
			}
			q := question()
			tc.change(&q)
			got := e.Decide(t.Context(), q)
			if diff := cmp.Diff(tc.want, evaluated(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			q.Reuse = false
			want := e.Decide(t.Context(), q)
			if diff := cmp.Diff(codes(want), codes(got)); diff != "" {
				t.Errorf("%s The reused answer differs (-fresh +reused):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(want.Scores, got.Scores); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func versioned(version string, labels map[string]string) *workloadv1alpha1.KubernetesTarget {
	out := target("eu", labels)
	out.ResourceVersion = version
	return out
}

// TestReuseOfPolicies changes policies, parameters and libraries.
func TestReuseOfPolicies(t *testing.T) {
	library := func(limit int) *policyv1alpha1.Policy {
		out := policy("lib-limit", "")
		out.Spec.Type = policyv1alpha1.Library
		out.Spec.Modules = map[string]string{"limit.rego": fmt.Sprintf("package lib.limit\n\nimport rego.v2\n\nmost := %d\n", limit)}
		return out
	}
	imports := policy("imports", "import data.lib.limit\n\ndeny contains {\"code\": \"A\", \"msg\": \"no\"} if count(input.targets) > limit.most\n")
	e := New(Options{Timeout: time.Minute})
	apply(t, e, library(1), imports, policy("other", denies("B")))
	q := scheduling(target("eu", nil))
	q.Reuse = true
	steps := []struct {
		reason string
		change func()
		want   string
	}{
		{"First.", func() {}, "imports other"},
		{"Nothing changed.", func() {}, ""},
		{"The same policy.", func() { apply(t, e, imports) }, ""},
		{"A library changed.", func() { apply(t, e, library(0)) }, "imports"},
		{"A policy changed.", func() { apply(t, e, policy("other", denies("C"))) }, "other"},
		{"A policy and its library changed back.", func() { apply(t, e, library(1), policy("other", denies("B"))) }, ""},
		{"The action is not part of the cached answer.", func() { apply(t, e, policy("other", denies("B"), action(policyv1alpha1.Warn))) }, "other"},
	}
	for _, step := range steps {
		step.change()
		if diff := cmp.Diff(step.want, evaluated(e.Decide(t.Context(), q))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
	}
	if d := e.Decide(t.Context(), q); len(d.Warnings) != 1 || len(d.Denied) != 0 {
		t.Errorf("a reused answer follows another action: %+v", d)
	}
}

// TestFailuresAreNotReused evaluates a policy again after a failure.
func TestFailuresAreNotReused(t *testing.T) {
	e := New(Options{Timeout: time.Minute, MaxConcurrent: 1})
	apply(t, e, policy("fails", "deny contains {\"code\": \"A\", \"msg\": \"no\"} if 1 / count({x | x := input.targets[_]}) > 5\n"), policy("loops", hostile["loop"]))
	q := scheduling()
	q.Reuse = true
	for range 2 {
		canceled, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		d := e.Decide(canceled, q)
		cancel()
		if diff := cmp.Diff("fails loops", evaluated(d)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"fails:" + CodePolicyError, "loops:" + CodePolicyTimeout}, codes(d)); diff != "" {
			t.Error(diff)
		}
	}
	q.Failed = map[string]error{"fails": errors.New("failed before"), "loops": errTimeout}
	d := e.Decide(t.Context(), q)
	if got := evaluated(d); got != "" {
		t.Errorf("evaluated %s, which failed for other objects", got)
	}
	if diff := cmp.Diff([]string{"fails:" + CodePolicyError, "loops:" + CodePolicyTimeout}, codes(d)); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkReuse measures a question that is answered from the cache: 100 targets and
// ten policies.
func BenchmarkReuse(b *testing.B) {
	e := New(Options{Timeout: time.Minute})
	e.Replace(context.Background(), benchPolicies(10))
	q := scheduling(benchTargets(100)...)
	q.Reuse = true
	decide(b, e, q)
}
