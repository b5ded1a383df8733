package simulate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
)

func named(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

func replicas(namespace, name string, count int64) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": count},
	}}
	out.SetNamespace(namespace)
	out.SetName(name)
	out.SetLabels(map[string]string{v1alpha1.ScheduleLabel: v1alpha1.ScheduleRemote})
	return out
}

// snapshot has two namespaces with objects, and Portico's own namespace.
func snapshot() *Snapshot {
	at := &v1alpha1.TargetReference{Name: "us"}
	template := runtime.RawExtension{Raw: []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}`)}
	s := &Snapshot{
		AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"},
		Targets: []v1alpha1.KubernetesTarget{
			{ObjectMeta: named("a", "us", nil)}, {ObjectMeta: named("b", "eu", nil)}, {ObjectMeta: named("portico-system", "own", nil)},
		},
		Applications: []*v1alpha2.KubernetesApplication{
			{ObjectMeta: named("a", "default", nil), Spec: v1alpha2.KubernetesApplicationSpec{TargetRef: at}},
		},
		Resources: []v1alpha1.KubernetesApplicationResource{
			{ObjectMeta: named("a", "web-deployment", map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}), Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: template}},
			{ObjectMeta: named("a", "config", nil), Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: template, TargetRef: at}},
		},
		Objects: []*unstructured.Unstructured{replicas("b", "big", 9), replicas("a", "web", 1), replicas("portico-system", "own", 9)},
	}
	for _, name := range []string{"a", "b", "portico-system"} {
		s.Namespaces = append(s.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return s
}

func policyOf(name string, action policyv1alpha1.Action, rules string) *policyv1alpha1.Policy {
	return &policyv1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1alpha1.PolicySpec{
		Type: policyv1alpha1.Scheduling, Action: action, Modules: map[string]string{"x.rego": "package scheduling.x\n\n" + rules},
	}}
}

const (
	big = `deny contains {"code": "Big", "msg": "is big"} if input.object.spec.replicas > 3` + "\n"
	// fails has two values for one rule.
	fails = "one := 1 if input.object\n\none := 2 if input.object\n\ndeny contains {\"code\": \"One\", \"msg\": \"one\"} if one == 1\n"
	far   = `exclude contains {"target": "us", "code": "Far", "msg": "is far"}` + "\n"
)

func TestSubjects(t *testing.T) {
	for of, want := range map[policyv1alpha1.PolicyType][]string{
		policyv1alpha1.Scheduling: {"KubernetesApplicationResource a/config on us", "Deployment a/web on us", "Deployment b/big on "},
		policyv1alpha1.Publish:    {"KubernetesTarget a/us on ", "KubernetesTarget b/eu on "},
		policyv1alpha1.Library:    nil,
	} {
		var got []string
		for _, s := range snapshot().Subjects(of) {
			got = append(got, fmt.Sprintf("%s %s/%s on %s", s.Kind, s.Namespace, s.Name, s.Question.Application.Target))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", of, diff)
		}
	}
}

func TestAudit(t *testing.T) {
	e := engine.New(engine.Options{})
	for _, policy := range []*policyv1alpha1.Policy{
		policyOf("big", policyv1alpha1.Audit, big), policyOf("far", policyv1alpha1.Deny, far),
		policyOf("fails", policyv1alpha1.Deny, fails), policyOf("broken", policyv1alpha1.Deny, "deny := 1\n"),
	} {
		e.Apply(t.Context(), policy)
	}
	want := map[string]*policyv1alpha1.PolicyAudit{
		"big": {Evaluated: 3, Violations: 1, Sample: []policyv1alpha1.PolicyViolation{
			{Kind: "Deployment", Namespace: "b", Name: "big", Code: "Big", Message: "is big"},
		}},
		"far": {Evaluated: 3, Violations: 2, Sample: []policyv1alpha1.PolicyViolation{
			{Kind: "KubernetesApplicationResource", Namespace: "a", Name: "config", Code: "Far", Message: "is far"},
			{Kind: "Deployment", Namespace: "a", Name: "web", Code: "Far", Message: "is far"},
		}},
		"fails": {Evaluated: 3},
	}
	results := Audit(t.Context(), e, snapshot(), MaxStatusSample)
	got := map[string]*policyv1alpha1.PolicyAudit{}
	for name, result := range results {
		got[name] = result.Status()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if failed := results["fails"]; failed.Failed != 3 || !strings.Contains(failed.Error, "conflict") {
		t.Errorf("%d evaluations failed: %s", failed.Failed, failed.Error)
	}
	if !SameAudit(got["big"], want["big"]) || SameAudit(got["big"], got["far"]) || SameAudit(nil, got["big"]) {
		t.Error("audits that found the same differ, or the other way round")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if Audit(ended, e, snapshot(), 0) != nil {
		t.Error("an audit that was interrupted has a result")
	}
}

// TestAuditSkipsFailingPolicy: an audit skips a policy after several failures.
func TestAuditSkipsFailingPolicy(t *testing.T) {
	s := snapshot()
	for i := range 50 {
		s.Objects = append(s.Objects, replicas("b", fmt.Sprintf("web-%02d", i), 1))
	}
	e := engine.New(engine.Options{})
	e.Apply(t.Context(), policyOf("fails", policyv1alpha1.Deny, fails))
	if got := Audit(t.Context(), e, s, 0)["fails"]; got.Failed != maxFailures || got.Evaluated != maxFailures {
		t.Errorf("%d of %d evaluations failed", got.Failed, got.Evaluated)
	}
}

// TestAuditStatusIsBounded: the status of a policy does not grow with the number of
// violations.
func TestAuditStatusIsBounded(t *testing.T) {
	s := snapshot()
	for i := range 50 {
		s.Objects = append(s.Objects, replicas("b", fmt.Sprintf("big-%02d", i), 9))
	}
	e := engine.New(engine.Options{})
	e.Apply(t.Context(), policyOf("long", policyv1alpha1.Audit, `deny contains {"code": "Long", "msg": "`+strings.Repeat("ü", 2000)+`"}`+"\n"))
	result := Audit(t.Context(), e, s, 0)["long"]
	got := result.Status()
	if got.Violations != 53 || len(result.Sample) != 53 || len(got.Sample) != MaxStatusSample || len(got.Sample[0].Message) > maxStatusMessage {
		t.Errorf("%d violations, %d of them kept and %d in the status, the first with %d bytes", got.Violations, len(result.Sample), len(got.Sample), len(got.Sample[0].Message))
	}
}

func TestImpact(t *testing.T) {
	e := engine.New(engine.Options{})
	for action, want := range map[policyv1alpha1.Action]string{
		"":                   "would deny 1 of 3, e.g. Deployment b/big (Big: is big)",
		policyv1alpha1.Deny:  "would deny 1 of 3, e.g. Deployment b/big (Big: is big)",
		policyv1alpha1.Warn:  "would warn of 1 of 3, e.g. Deployment b/big (Big: is big)",
		policyv1alpha1.Audit: "would record 1 of 3, e.g. Deployment b/big (Big: is big)",
	} {
		policy := policyOf("big", action, big)
		_, draft := e.Draft(t.Context(), policy)
		if got := Impact(t.Context(), draft, action, snapshot()); got != want {
			t.Errorf("%s: %q", action, got)
		}
	}
	_, draft := e.Draft(t.Context(), policyOf("none", "", `deny contains {"code": "X", "msg": "x"} if input.object.kind == "Pod"`+"\n"))
	if got := Impact(t.Context(), draft, "", snapshot()); got != "" {
		t.Errorf("the policy matches no object, and the message is %q", got)
	}
	if _, draft := e.Draft(t.Context(), policyOf("broken", "", "deny := 1\n")); draft != nil {
		t.Error("a broken policy can be asked")
	}
	if len(e.Policies()) != 0 {
		t.Error("a draft is in force")
	}
}
