package decisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

func scheduling(name, rules string, action policyv1alpha1.Action) *policyv1alpha1.Policy {
	return &policyv1alpha1.Policy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1alpha1.PolicySpec{
			Type: policyv1alpha1.Scheduling, Action: action,
			Modules: map[string]string{name + ".rego": "package scheduling.example\n\nimport rego.v2\n\n" + rules},
		},
	}
}

func evaluator(t *testing.T, policies ...*policyv1alpha1.Policy) *Evaluator {
	t.Helper()
	e := engine.New(engine.Options{})
	for _, p := range policies {
		if err := e.Apply(context.Background(), p).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return New(e, "portico-system")
}

func object(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"image": "confidential"}}}
	o.SetName(name)
	return o
}

func target(name string) v1alpha1.KubernetesTarget {
	return v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"name": name}}}
}

const (
	denies   = `deny contains {"code": "No", "msg": "not today", "field": "spec"}` + "\n"
	excludes = `exclude contains {"target": "us", "code": "Far", "msg": "is too far"}` + "\n"
	errs     = `deny contains {"code": "No", "msg": "no"} if units.parse_bytes("12 parsecs") > 10` + "\n"
)

// TestRecord: decisions are in the log and in the metrics. The content of the object is
// not.
func TestRecord(t *testing.T) {
	var lines []string
	log := func(verbosity int) logr.Logger {
		lines = nil
		return funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{Verbosity: verbosity})
	}
	a := evaluator(t, scheduling("denies", denies, ""), scheduling("errs", errs, ""), scheduling("excludes", excludes, ""), scheduling("silent", denies+"\nx := 1\n", policyv1alpha1.Audit))
	place := SchedulingContext{Namespace: NamespaceFromMetadata("shop", &metav1.ObjectMeta{}), Application: input.Application{Name: "web"}, Targets: []v1alpha1.KubernetesTarget{target("eu"), target("us")}}
	q := place.Question(input.Request{Operation: "CREATE", User: input.User{Username: "ada"}}, object("web"), nil)
	d := a.Evaluate(context.Background(), Caller{ID: "review-1", Component: "admission", Log: log(0)}, q)
	if d.Allowed() || len(lines) != 4 {
		t.Fatalf("decided %v, and wrote down:\n%s", d, strings.Join(lines, "\n"))
	}
	for _, want := range []string{`"decision":"review-1"`, `"policy":"denies"`, `"action":"Deny"`, `"result":"deny"`, `"codes":["No"]`, `"user":"ada"`, `"kind":"Deployment"`, `"name":"web"`, `"namespace":"shop"`, `"dryRun":false`, `"latency":`, `"revision":`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%s is not in %s", want, lines[0])
		}
	}
	if all := strings.Join(lines, "\n"); strings.Contains(all, "confidential") || strings.Contains(all, "not today") {
		t.Errorf("the log has data of the object:\n%s", all)
	}

	q.Request.DryRun = true
	a.Evaluate(context.Background(), Caller{Log: log(0)}, q)
	want := []string{
		`policy_errors_total{dry_run="false",policy="errs",reason="PolicyError"} 1`,
		`policy_errors_total{dry_run="true",policy="errs",reason="PolicyError"} 1`,
		`policy_evaluation_seconds{policy="denies"} 1`,
		`policy_evaluation_seconds{policy="errs"} 1`,
		`policy_evaluation_seconds{policy="excludes"} 1`,
		`policy_evaluation_seconds{policy="silent"} 1`,
		`policy_evaluations_total{dry_run="false",policy="denies",result="deny",type="Scheduling"} 1`,
		`policy_evaluations_total{dry_run="false",policy="errs",result="error",type="Scheduling"} 1`,
		`policy_evaluations_total{dry_run="false",policy="excludes",result="exclude",type="Scheduling"} 1`,
		`policy_evaluations_total{dry_run="false",policy="silent",result="audit",type="Scheduling"} 1`,
		`policy_evaluations_total{dry_run="true",policy="denies",result="deny",type="Scheduling"} 1`,
		`policy_evaluations_total{dry_run="true",policy="errs",result="error",type="Scheduling"} 1`,
		`policy_evaluations_total{dry_run="true",policy="excludes",result="exclude",type="Scheduling"} 1`,
		`policy_evaluations_total{dry_run="true",policy="silent",result="audit",type="Scheduling"} 1`,
		`policy_excluded_targets_total{code="Far",policy="excludes"} 1`,
	}
	if diff := cmp.Diff(want, recorded(t, a)); diff != "" {
		t.Error(diff)
	}
	for _, policy := range []string{"denies", "errs", "excludes", "silent"} {
		a.DeleteMetrics(policy)
	}
	if diff := cmp.Diff([]string(nil), recorded(t, a)); diff != "" {
		t.Errorf("metrics are left of policies that are no more: %s", diff)
	}
}

// recorded returns the metrics as text. For a histogram it returns the number of
// observations.
func recorded(t *testing.T, a *Evaluator) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(a)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			value := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			out = append(out, fmt.Sprintf("%s{%s} %v", family.GetName(), strings.Join(labels, ","), value))
		}
	}
	return out
}

// TestAllowedIsQuiet: a decision that allows the object is only logged at a higher
// verbosity.
func TestAllowedIsQuiet(t *testing.T) {
	a := evaluator(t, scheduling("denies", denies+"\n", ""), scheduling("kind", `deny contains {"code": "A", "msg": "no"} if input.object.kind == "Pod"`+"\n", ""))
	for verbosity, want := range map[int]int{0: 1, 2: 2} {
		got := 0
		log := funcr.New(func(_, _ string) { got++ }, funcr.Options{Verbosity: verbosity})
		place := SchedulingContext{Namespace: NamespaceFromMetadata("shop", &metav1.ObjectMeta{})}
		a.Evaluate(context.Background(), Caller{Log: log}, place.Question(input.Request{}, object("web"), nil))
		if got != want {
			t.Errorf("at verbosity %d there are %d lines, want %d", verbosity, got, want)
		}
	}
}

func TestApplies(t *testing.T) {
	a := evaluator(t, scheduling("denies", denies, ""))
	cases := map[string]struct {
		t         policyv1alpha1.PolicyType
		namespace string
		want      bool
	}{
		"Scheduling":    {policyv1alpha1.Scheduling, "shop", true},
		"NoSuchPolicy":  {policyv1alpha1.Publish, "shop", false},
		"PorticosOwn":   {policyv1alpha1.Scheduling, "portico-system", false},
		"OnlyByItsName": {policyv1alpha1.Scheduling, "portico-system-2", true},
	}
	for name, tc := range cases {
		if got := a.Applies(tc.t, tc.namespace); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestPlace(t *testing.T) {
	place := SchedulingContext{
		Namespace: NamespaceFromMetadata("shop", &metav1.ObjectMeta{Labels: map[string]string{"env": "prod"}}),
		Selector:  labels.SelectorFromSet(labels.Set{"name": "eu"}),
		Targets:   []v1alpha1.KubernetesTarget{target("eu"), target("us")},
		Placed:    map[string]int{"eu": 1},
	}
	elsewhere := object("web")
	elsewhere.SetNamespace("on-the-target")
	q := place.Question(input.Request{}, elsewhere, object("web"))
	if q.Request.Namespace != "shop" || q.Namespace.Labels["env"] != "prod" || q.Selector.String() != "name=eu" || len(q.Targets) != 2 || q.OldObject == nil {
		t.Errorf("before it is placed: %+v", q)
	}
	place.Application.Target = "us"
	if q := place.Question(input.Request{}, elsewhere, nil); q.Selector != nil || len(q.Targets) != 1 || q.Targets[0].Name != "us" {
		t.Errorf("once it is placed: %+v", q)
	}
	place.Application.Target = "gone"
	if q := place.Question(input.Request{}, elsewhere, nil); len(q.Targets) != 0 {
		t.Errorf("on a target that is no more: %+v", q)
	}
}

func TestPublish(t *testing.T) {
	of := func(namespace, name, cluster string) v1alpha1.KubernetesTarget {
		out := v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if cluster != "" {
			out.Spec.ClusterRef = &v1alpha1.ClusterReference{APIVersion: "a/v1", Kind: "C", Name: cluster}
		}
		return out
	}
	withSecret := func(target v1alpha1.KubernetesTarget) v1alpha1.KubernetesTarget {
		target.Spec.ConnectionSecretRef = &v1alpha1.SecretReference{Namespace: "shop", Name: "eu"}
		return target
	}
	now := withSecret(of("shop", "eu", "one"))
	others := []v1alpha1.KubernetesTarget{now, withSecret(of("blog", "secret", "")), of("shop", "us", ""), of("bank", "eu", "one"), of("bank", "us", "two"), of("blog", "eu", "")}
	q := PublishQuestion(input.Request{Operation: "CREATE"}, &now, nil, NamespaceFromMetadata("shop", &metav1.ObjectMeta{}), others)
	// The index returns the same targets, and some of them twice.
	related, err := ListRelatedTargets(&now, func(key string) ([]v1alpha1.KubernetesTarget, error) {
		var out []v1alpha1.KubernetesTarget
		for i := range others {
			if slices.Contains(policies.RelatedTargetKeys(&others[i]), key) {
				out = append(out, others[i])
			}
		}
		return out, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	indexed := PublishQuestion(input.Request{Operation: "CREATE"}, &now, nil, NamespaceFromMetadata("shop", &metav1.ObjectMeta{}), related)
	for name, q := range map[string]engine.Question{"all": q, "indexed": indexed} {
		var got []string
		for _, other := range q.Existing {
			got = append(got, other.Namespace+"/"+other.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"bank/eu", "blog/secret", "shop/us"}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	failure := errors.New("the cache is not started")
	if _, err := ListRelatedTargets(&now, func(string) ([]v1alpha1.KubernetesTarget, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
}

func TestWords(t *testing.T) {
	found := engine.Finding{Policy: "p", Code: "A", Message: "no", Field: "spec.x"}
	far := engine.Finding{Policy: "p", Code: "Far", Message: "is far", Target: "us"}
	old := engine.Finding{Policy: "q", Code: "Old", Message: "is old", Target: "us"}
	timeout := engine.Finding{Policy: "p", Code: engine.CodePolicyTimeout}

	if diff := cmp.Diff([]string{"policy p: A: no (spec.x)", "policy p: Far: target us: is far"}, Messages([]engine.Finding{found, far})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"us": "is excluded by policy p: Far: is far, and by policy q: Old: is old"}, ExclusionReasons([]engine.Finding{far, old})); diff != "" {
		t.Error(diff)
	}
	if ExclusionReasons(nil) != nil {
		t.Error("nothing is excluded, and yet something")
	}
	if diff := cmp.Diff([]engine.Finding{far}, FindingsAbout("us", []engine.Finding{far, {Target: "eu"}})); diff != "" {
		t.Error(diff)
	}
	within := PrefixFields("spec.template", []engine.Finding{found, {Policy: "p"}})
	if diff := cmp.Diff([]string{"spec.template.spec.x", "spec.template"}, []string{within[0].Field, within[1].Field}); diff != "" || found.Field != "spec.x" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		denied []engine.Finding
		want   bool
	}{{nil, false}, {[]engine.Finding{timeout}, true}, {[]engine.Finding{timeout, found}, false}} {
		if got := EvaluationFailed(tc.denied); got != tc.want {
			t.Errorf("%v: %v", tc.denied, got)
		}
	}
}

func TestJoining(t *testing.T) {
	far, no, hm := engine.Finding{Policy: "far", Target: "us"}, engine.Finding{Policy: "no"}, engine.Finding{Policy: "hm"}
	d := engine.Decision{Denied: []engine.Finding{no}, Warnings: []engine.Finding{hm}, Excluded: []engine.Finding{far, {Policy: "far", Target: "eu"}}}
	cases := map[string]struct {
		isNew bool
		want  engine.Decision
	}{
		"New":  {true, engine.Decision{Denied: []engine.Finding{far, no}, Warnings: []engine.Finding{hm}}},
		"Runs": {false, engine.Decision{Denied: []engine.Finding{no}, Warnings: []engine.Finding{far, hm}}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(&tc.want, RestrictToTarget(d, "us", tc.isNew)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if len(d.Excluded) != 2 || len(d.Denied) != 1 {
		t.Error("the decision itself changed")
	}
}

func TestWarnings(t *testing.T) {
	got := AdmissionWarnings([]string{"short", strings.Repeat("ü", 150), "two\nlines"})
	if got[0] != "short" || len(got[1]) > 200 || !strings.HasSuffix(got[1], "ü...") || got[2] != "two lines" {
		t.Errorf("got %q", got)
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprint(i))
	}
	if got := AdmissionWarnings(many); len(got) != 16 || got[15] != "and 25 more" {
		t.Errorf("got %q", got)
	}
	if got := AdmissionWarnings(many[:16]); len(got) != 16 || got[15] != "15" {
		t.Errorf("got %q", got)
	}
}

func TestAnnotations(t *testing.T) {
	evaluated := []engine.Evaluation{{Policy: "a"}, {Policy: "b"}}
	cases := map[string]struct {
		reason string
		d      engine.Decision
		want   map[string]string
	}{
		"Nobody": {reason: "A decision without evaluations has no annotations.", d: engine.Decision{Revision: "r"}},
		"Allow":  {reason: "An allowed request is annotated too.", d: engine.Decision{Revision: "r", Evaluations: evaluated}, want: map[string]string{"decision": "allow", "revision": "r"}},
		"Audit": {
			reason: "An audited finding has annotations and no warning.",
			d:      engine.Decision{Revision: "r", Evaluations: evaluated, Recorded: []engine.Finding{{Policy: "b", Code: "X"}, {Policy: "b", Code: "X"}}},
			want:   map[string]string{"decision": "audit", "revision": "r", "policies": "b", "codes": "X"},
		},
		"Worst": {
			reason: "The annotation has the most severe decision.",
			d: engine.Decision{Revision: "r", Evaluations: evaluated,
				Warnings: []engine.Finding{{Policy: "b", Code: "W"}}, Denied: []engine.Finding{{Policy: "a", Code: "D"}}},
			want: map[string]string{"decision": "deny", "revision": "r", "policies": "a,b", "codes": "D,W"},
		},
		"Error": {
			reason: "An error of a policy that only warns is annotated too.",
			d: engine.Decision{Revision: "r", Evaluations: []engine.Evaluation{{Policy: "a", Err: errors.New("x"), Code: "PolicyError"}},
				Warnings: []engine.Finding{{Policy: "a", Code: "PolicyError"}}},
			want: map[string]string{"decision": "error", "revision": "r", "policies": "a", "codes": "PolicyError"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, AuditAnnotations(&tc.d), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}
