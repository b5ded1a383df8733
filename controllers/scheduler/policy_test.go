package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/placement"
)

func resource(name, kind string) v1alpha1.KubernetesApplicationResource {
	return v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"` + name + `"}}`)}},
	}
}

func template(name, kind string) v1alpha2.ResourceTemplate {
	t := v1alpha2.ResourceTemplate{}
	t.Metadata.Name = name
	t.Spec.Template = resource(name, kind).Spec.Template
	return t
}

func TestSends(t *testing.T) {
	gone := resource("gone", "Service")
	gone.DeletionTimestamp = &metav1.Time{}
	unreadable := resource("unreadable", "")
	app := &v1alpha2.KubernetesApplication{Spec: v1alpha2.KubernetesApplicationSpec{
		ResourceTemplates: []v1alpha2.ResourceTemplate{template("web", "Service"), template("web", "ConfigMap")},
	}}
	var got []string
	for _, object := range sends(app, []v1alpha1.KubernetesApplicationResource{resource("web", "Service"), gone, unreadable, resource("other", "Service")}) {
		got = append(got, object.GetKind()+"/"+object.GetName())
	}
	if diff := cmp.Diff([]string{"Service/web", "Service/other", "ConfigMap/web"}, got); diff != "" {
		t.Errorf("each object once, and what goes not at all: %s", diff)
	}
	if got := sends(nil, nil); len(got) != 0 {
		t.Errorf("nothing sends %v", got)
	}
}

func TestScheduled(t *testing.T) {
	known := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.Scheduled, Status: status, Message: message}}
	}
	cases := map[string]struct {
		reason, because string
		known           []metav1.Condition
		want            string
	}{
		"First":   {reason: "The one target there is needs no reason.", want: "application shop runs on target eu"},
		"Because": {reason: "What became of the others is told.", because: "us is cordoned", want: "application shop runs on target eu; us is cordoned"},
		"Stays":   {reason: "And is still known when nobody chooses any more.", known: known(metav1.ConditionTrue, "application shop runs on target eu; us is cordoned"), want: "application shop runs on target eu; us is cordoned"},
		"Anew":    {reason: "A new choice has a new reason.", because: "us is full", known: known(metav1.ConditionTrue, "application shop runs on target eu; us is cordoned"), want: "application shop runs on target eu; us is full"},
		"Other":   {reason: "The reason for another target is none.", known: known(metav1.ConditionTrue, "application shop runs on target eu-2; us is cordoned"), want: "application shop runs on target eu"},
		"Waited":  {reason: "Nor is why it waited.", known: known(metav1.ConditionFalse, "application shop runs on target eu; not"), want: "application shop runs on target eu"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 3}, Status: v1alpha2.KubernetesApplicationStatus{Conditions: tc.known}}
			got := scheduled(app, "eu", tc.because)
			want := metav1.Condition{Type: "Scheduled", Status: "True", Reason: "Scheduled", Message: tc.want, ObservedGeneration: 3}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDenied(t *testing.T) {
	app := &v1alpha2.KubernetesApplication{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	no := engine.Finding{Policy: "many", Code: "TooMany", Message: "asks for 5"}
	slow := engine.Finding{Policy: "slow", Code: engine.CodePolicyTimeout, Message: "took too long"}
	cases := map[string]struct {
		said    engine.Decision
		reason  string
		message string
		again   bool
	}{
		"Denied": {engine.Decision{Denied: []engine.Finding{no, slow}}, "DeniedByPolicy", "policy many: TooMany: asks for 5; policy slow: PolicyTimeout: took too long", false},
		"Failed": {engine.Decision{Denied: []engine.Finding{slow}}, "PolicyFailed", "policy slow: PolicyTimeout: took too long", true},
	}
	for name, tc := range cases {
		got := denied(app, &tc.said)
		if got.Reason != tc.reason || got.Message != tc.message || got.Status != metav1.ConditionFalse || got.Type != "Scheduled" {
			t.Errorf("%s: %+v", name, got)
		}
		if (again(&tc.said) > 0) != tc.again {
			t.Errorf("%s: asks again: %v", name, again(&tc.said))
		}
	}
}

func TestObey(t *testing.T) {
	targets := []v1alpha1.KubernetesTarget{{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}, {ObjectMeta: metav1.ObjectMeta{Name: "us"}}}
	q := placement.Question{Targets: targets, Excluded: map[string]string{"eu": "is the one to leave"}}
	got := obey(q, &engine.Decision{Excluded: []engine.Finding{{Policy: "p", Code: "A", Message: "no", Target: "us"}}, Scores: map[string]float64{"us": 3}})
	if len(got.Excluded) != 2 || got.Excluded["eu"] != "is the one to leave" || got.Scores["us"] != 3 {
		t.Errorf("%+v", got)
	}
	got = obey(q, &engine.Decision{Denied: []engine.Finding{{Policy: "p", Code: "A", Message: "no"}}})
	if diff := cmp.Diff(map[string]string{"eu": "is the one to leave", "us": "is denied by policy p: A: no"}, got.Excluded); diff != "" {
		t.Error(diff)
	}
	if len(q.Excluded) != 1 {
		t.Errorf("the question was changed: %v", q.Excluded)
	}
}

func TestHear(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"env": "prod"}}}).Build()
	e := engine.New(engine.Options{Timeout: time.Minute})
	c := council{hub: hub, asker: decisions.New(e, "portico-system")}
	where := placement.Question{Selector: labels.Everything(), Targets: []v1alpha1.KubernetesTarget{{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}, {ObjectMeta: metav1.ObjectMeta{Name: "us"}}}}
	all := sends(nil, []v1alpha1.KubernetesApplicationResource{resource("web", "Service"), resource("settings", "ConfigMap")})

	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.hear(over, "team-a", input.Application{}, where, all); err == nil {
		t.Error("decided before the policies were loaded")
	}
	e.Replace(t.Context(), []*policyv1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: policyv1alpha1.PolicySpec{
		Type: policyv1alpha1.Scheduling, Modules: map[string]string{"p.rego": strings.Join([]string{
			"package scheduling.p", "import rego.v2",
			`exclude contains {"target": "us", "code": "Far", "msg": input.object.kind} if input.namespace.metadata.labels.env == "prod"`,
			`score["eu"] := 80 if input.object.kind == "Service"`,
			`deny contains {"code": "Asked", "msg": "somebody asked"} if input.request.operation != "AUDIT"`,
		}, "\n\n")},
	}}})
	got, err := c.hear(t.Context(), "team-a", input.Application{}, where, all)
	if err != nil || !got.Allowed() {
		t.Fatal(err, got)
	}
	want := map[string]string{"us": "is excluded by policy p: Far: ConfigMap, and by policy p: Far: Service"}
	if diff := cmp.Diff(want, decisions.Exclusions(got.Excluded)); diff != "" {
		t.Error(diff)
	}
	if got.Scores["eu"] != 40 {
		t.Errorf("two objects, of which one prefers eu by 80, score %v", got.Scores)
	}
	if got, err := c.hear(t.Context(), "portico-system", input.Application{}, where, all); err != nil || len(got.Excluded) > 0 {
		t.Errorf("Portico's own namespace met a policy: %v, %v", got, err)
	}
}
