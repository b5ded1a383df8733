package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/policies/engine"
)

func newResource(name, kind string) v1alpha1.KubernetesApplicationResource {
	return v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"` + name + `"}}`)}},
	}
}

func template(name, kind string) v1alpha2.ResourceTemplate {
	t := v1alpha2.ResourceTemplate{}
	t.Metadata.Name = name
	t.Spec.Template = newResource(name, kind).Spec.Template
	return t
}

func TestObjects(t *testing.T) {
	gone := newResource("gone", "Service")
	gone.DeletionTimestamp = &metav1.Time{}
	unreadable := newResource("unreadable", "")
	app := application{&v1alpha2.KubernetesApplication{Spec: v1alpha2.KubernetesApplicationSpec{
		ResourceTemplates: []v1alpha2.ResourceTemplate{template("web", "Service"), template("web", "ConfigMap")},
	}}}
	var got []string
	for _, object := range app.objects([]v1alpha1.KubernetesApplicationResource{newResource("web", "Service"), gone, unreadable, newResource("other", "Service")}) {
		got = append(got, object.GetKind()+"/"+object.GetName())
	}
	if diff := cmp.Diff([]string{"Service/web", "Service/other", "ConfigMap/web"}, got); diff != "" {
		t.Errorf("want each object once, and none that is deleted or cannot be read: %s", diff)
	}
	alone := newResource("web", "Service")
	if got := (resource{&alone}).objects([]v1alpha1.KubernetesApplicationResource{alone}); len(got) != 1 || got[0].GetName() != "web" {
		t.Errorf("a resource sends %v", got)
	}
}

func TestScheduled(t *testing.T) {
	known := func(reason string, generation int64, message string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.Scheduled, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation}}
	}
	cases := map[string]struct {
		reason, explanation string
		known               []metav1.Condition
		want                string
	}{
		"First":       {reason: "The only target needs no explanation.", want: "application shop runs on target eu"},
		"Explanation": {reason: "The reasons against the other targets are in the message.", explanation: "us is cordoned", want: "application shop runs on target eu; us is cordoned"},
		"Kept":        {reason: "The reasons are kept as long as nothing changes.", known: known("Scheduled", 3, "application shop runs on target eu; us is cordoned"), want: "application shop runs on target eu; us is cordoned"},
		"NewChoice":   {reason: "A new choice has a new explanation.", explanation: "us is full", known: known("Scheduled", 3, "application shop runs on target eu; us is cordoned"), want: "application shop runs on target eu; us is full"},
		"SpecChanged": {reason: "A condition of an earlier spec may name another target.", known: known("Scheduled", 2, "application shop runs on target eu-2; us is cordoned"), want: "application shop runs on target eu"},
		"OtherReason": {reason: "A condition with another reason is no explanation.", known: known("CannotMove", 3, "application shop stays"), want: "application shop runs on target eu"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 3}, Status: v1alpha2.KubernetesApplicationStatus{Conditions: tc.known}}
			got := scheduled(application{app}, "eu", tc.explanation)
			want := metav1.Condition{Type: "Scheduled", Status: "True", Reason: "Scheduled", Message: tc.want, ObservedGeneration: 3}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDenied(t *testing.T) {
	app := application{&v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 2}}}
	no := engine.Finding{Policy: "many", Code: "TooMany", Message: "asks for 5"}
	slow := engine.Finding{Policy: "slow", Code: engine.CodePolicyTimeout, Message: "took too long"}
	cases := map[string]struct {
		denied          []engine.Finding
		reason, message string
	}{
		"Denied": {[]engine.Finding{no, slow}, "DeniedByPolicy", "policy many: TooMany: asks for 5; policy slow: PolicyTimeout: took too long"},
		"Failed": {[]engine.Finding{slow}, "PolicyFailed", "policy slow: PolicyTimeout: took too long"},
	}
	for name, tc := range cases {
		want := metav1.Condition{Type: "Scheduled", Status: "False", Reason: tc.reason, Message: tc.message, ObservedGeneration: 2}
		if diff := cmp.Diff(want, denied(app, &engine.Decision{Denied: tc.denied})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestInReview(t *testing.T) {
	app := application{&v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	messages := map[string]bool{}
	for evaluated := range 10_000 {
		messages[inReview(app, policycheck.Review{Evaluated: evaluated, Total: 10_000}).Message] = true
	}
	if len(messages) != 10 {
		t.Errorf("%d different messages, want 10", len(messages))
	}
	want := metav1.Condition{Type: "Scheduled", Status: "False", Reason: "Progressing", Message: "policies were evaluated for at least 3000 of 10000 objects of application shop"}
	if diff := cmp.Diff(want, inReview(app, policycheck.Review{Evaluated: 3999, Total: 10_000})); diff != "" {
		t.Error(diff)
	}
	app.setTarget("eu")
	want.Status, want.Message = "True", want.Message+"; it remains on target eu until then"
	if diff := cmp.Diff(want, inReview(app, policycheck.Review{Evaluated: 3999, Total: 10_000})); diff != "" {
		t.Error(diff)
	}
}
