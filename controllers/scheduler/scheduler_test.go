package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/controllers/policycheck"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/targetselection"
)

func rego(name string, rules ...string) *policyv1alpha1.Policy {
	return &policyv1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1alpha1.PolicySpec{
		Type:    policyv1alpha1.Scheduling,
		Modules: map[string]string{name + ".rego": "package scheduling." + name + "\n\nimport rego.v2\n\n" + strings.Join(rules, "\n\n")},
	}}
}

func namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"env": "prod"}}}
}

// member returns a resource of application shop without a target.
func member(name string) *v1alpha1.KubernetesApplicationResource {
	out := newResource(name, "Service")
	out.Namespace, out.Labels = "a", map[string]string{v1alpha1.ApplicationLabel: "shop"}
	return &out
}

// calls records the requests to the hub, and fails one of them.
type calls struct {
	log  []string
	fail string
}

var errHub = errors.New("the hub is unavailable")

func (c *calls) record(call string) error {
	c.log = append(c.log, call)
	if call == c.fail {
		return errHub
	}
	return nil
}

func (c *calls) funcs() interceptor.Funcs {
	targets := 0
	return reconcilertest.Before(func(r reconcilertest.Request) error {
		call := strings.TrimSuffix(r.String(), "List")
		if call == "list KubernetesTarget" {
			if targets++; targets%2 == 0 {
				call += " again"
			}
		}
		return c.record(call)
	})
}

// TestSteps records the requests of one reconcile, and makes each of them fail. A
// target that was not written is not counted in the load.
func TestSteps(t *testing.T) {
	req := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "shop"}}
	policy := rego("p", `deny contains {"code": "A", "msg": "no"} if input.namespace.metadata.labels.env != "prod"`)
	alone := newResource("shop", "Service")
	alone.Namespace = "a"
	cases := map[string]struct {
		object client.Object
		want   []string
	}{
		"Application": {newApplication("shop", template("web", "Service")), []string{
			"get KubernetesApplication", "list KubernetesApplicationResource", "list KubernetesTarget", "get Namespace",
			"list KubernetesTarget again", "patch KubernetesApplication", "patch status KubernetesApplication"}},
		"Resource": {&alone, []string{
			"get KubernetesApplicationResource", "list KubernetesTarget", "get Namespace",
			"list KubernetesTarget again", "patch KubernetesApplicationResource"}},
	}
	for name, tc := range cases {
		run := func(t *testing.T, c *calls) (client.Client, *targetselection.Load, error) {
			hub := hub(t, c.funcs(), namespace(), target("eu"), tc.object.DeepCopyObject().(client.Object))
			a, load := controller(t, hub, policy)
			load.SetTarget(target("eu"))
			var r reconcile.Reconciler = a
			if name == "Resource" {
				r = &resources{a.scheduler}
			}
			_, err := r.Reconcile(t.Context(), req)
			return hub, load, err
		}
		t.Run(name, func(t *testing.T) {
			c := &calls{}
			if _, _, err := run(t, c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.log); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for i, call := range tc.want {
				c := &calls{fail: call}
				_, load, err := run(t, c)
				if !errors.Is(err, errHub) {
					t.Errorf("%s fails: %v", call, err)
				}
				if diff := cmp.Diff(tc.want[:i+1], c.log); diff != "" {
					t.Errorf("%s fails (-want +got):\n%s", call, diff)
				}
				counted := 0
				if strings.HasPrefix(call, "patch status") { // the target is written
					counted = 1
				}
				if got := load.ForTargets([]v1alpha1.KubernetesTarget{*target("eu")})["eu"]; got != counted {
					t.Errorf("%s fails, and the load is %d, want %d", call, got, counted)
				}
			}
		})
	}
}

// TestReconcile compares the condition and the target of an application.
func TestReconcile(t *testing.T) {
	moving := func(app *v1alpha2.KubernetesApplication, at, from string) *v1alpha2.KubernetesApplication {
		app.Spec.TargetRef = &v1alpha1.TargetReference{Name: at}
		if from != "" {
			app.Annotations = map[string]string{v1alpha1.MoveFromAnnotation: from}
		}
		return app
	}
	frontDoor := newApplication("shop")
	frontDoor.Labels = map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor}
	invalid := newApplication("shop", template("web", "Service"))
	invalid.Spec.TargetSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	deny := rego("p", `deny contains {"code": "A", "msg": "no"} if input.object.kind == "Service"`)
	fails := rego("p", `deny contains {"code": "A", "msg": "no"} if to_number(input.object.metadata.name) > 1`)
	excludes := rego("p", `exclude contains {"target": "us", "code": "Far", "msg": "is far"} if input.object.kind == "Service"`)
	cases := map[string]struct {
		reason   string
		app      *v1alpha2.KubernetesApplication
		policies []*policyv1alpha1.Policy
		targets  []string
		want     string // target, reason and message
		requeue  time.Duration
		terminal bool
		events   []string
	}{
		"Placed":   {reason: "The only target is selected.", app: newApplication("shop", template("web", "Service")), targets: []string{"eu"}, want: "eu Scheduled application shop runs on target eu", events: []string{"Normal Scheduled application shop runs on target eu"}},
		"NoTarget": {reason: "The namespace has no target.", app: newApplication("shop", template("web", "Service")), want: " NoMatchingTarget no KubernetesTarget is published in namespace a", events: []string{"Warning NoMatchingTarget no KubernetesTarget is published in namespace a"}},
		"Excluded": {reason: "A policy excludes the only target.", app: newApplication("shop", template("web", "Service")), policies: []*policyv1alpha1.Policy{excludes}, targets: []string{"us"}, want: " NoMatchingTarget 0 of 1 targets match: us is excluded by policy p: Far: is far", events: []string{"Warning NoMatchingTarget 0 of 1 targets match: us is excluded by policy p: Far: is far"}},
		"Denied":   {reason: "A denial of the policies is final.", app: newApplication("shop", template("web", "Service")), policies: []*policyv1alpha1.Policy{deny}, targets: []string{"eu"}, want: " DeniedByPolicy policy p: A: no", events: []string{"Warning DeniedByPolicy policy p: A: no"}},
		"Failed":   {reason: "A policy fails, and is evaluated again.", app: newApplication("shop", template("web", "Service")), policies: []*policyv1alpha1.Policy{fails}, targets: []string{"eu"}, want: " PolicyFailed policy p: PolicyError: the policy could not be evaluated:", requeue: policycheck.RetryInterval, events: []string{"Warning PolicyFailed policy p: PolicyError: the policy could not be evaluated:"}},
		"Empty":    {reason: "An application of native objects waits for its first member.", app: frontDoor, targets: []string{"eu"}, want: " "},
		"Invalid":  {reason: "A user has to correct the selector.", app: invalid, targets: []string{"eu"}, want: " ", terminal: true},
		"Kept":     {reason: "An application keeps its target.", app: moving(newApplication("shop"), "eu", ""), targets: []string{"us"}, want: "eu Scheduled application shop runs on target eu", events: []string{"Normal Scheduled application shop runs on target eu"}},
		"Moves":    {reason: "An application leaves its target.", app: moving(newApplication("shop", template("web", "Service")), "eu", "eu"), targets: []string{"eu", "us"}, want: "us Scheduled application shop runs on target us; eu is the target to leave", events: []string{"Normal Scheduled application shop runs on target us; eu is the target to leave"}},
		"Moved":    {reason: "An application is on another target than the one to leave.", app: moving(newApplication("shop"), "us", "eu"), targets: []string{"eu", "us"}, want: "us Scheduled application shop runs on target us", events: []string{"Normal Scheduled application shop runs on target us"}},
		"CannotMove": {reason: "No other target matches.", app: moving(newApplication("shop", template("web", "Service")), "eu", "eu"), targets: []string{"eu"},
			want:   "eu CannotMove application shop remains on target eu, which it has to leave: 0 of 1 targets match: eu is the target to leave",
			events: []string{"Normal CannotMove application shop remains on target eu", "Warning CannotMove application shop remains on target eu"}},
		"DeniedMove": {reason: "Policies deny each other target.", app: moving(newApplication("shop", template("web", "Service")), "eu", "eu"), targets: []string{"eu", "us"}, policies: []*policyv1alpha1.Policy{deny},
			want:   "eu CannotMove application shop remains on target eu, which it has to leave: 0 of 2 targets match: eu is the target to leave; us is denied by policy p: A: no",
			events: []string{"Normal CannotMove application shop remains on target eu", "Warning CannotMove application shop remains on target eu"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{namespace(), tc.app.DeepCopy()}
			for _, name := range tc.targets {
				objects = append(objects, target(name))
			}
			hub := hub(t, interceptor.Funcs{}, objects...)
			a, _ := controller(t, hub, tc.policies...)
			recorder := events.NewFakeRecorder(100)
			a.recorder = recorder
			result, err := a.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(tc.app)})
			if tc.terminal != errors.Is(err, reconcile.TerminalError(nil)) || !tc.terminal && err != nil {
				t.Fatalf("%s %v", tc.reason, err)
			}
			if result.RequeueAfter != tc.requeue {
				t.Errorf("%s It is requeued after %v, want %v", tc.reason, result.RequeueAfter, tc.requeue)
			}
			if got := outcome(t, hub); !strings.HasPrefix(got, tc.want) || len(tc.want) < 2 && got != tc.want {
				t.Errorf("%s got %q, want %q", tc.reason, got, tc.want)
			}
			for _, want := range tc.events {
				if got := reconcilertest.NextEvent(recorder); !strings.HasPrefix(got, want) {
					t.Errorf("%s event %q, want %q", tc.reason, got, want)
				}
			}
			if got := reconcilertest.NextEvent(recorder); got != "" {
				t.Errorf("%s also the event %q", tc.reason, got)
			}
			if _, err := a.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(tc.app)}); !tc.terminal && err != nil {
				t.Error(err)
			}
			if got := reconcilertest.NextEvent(recorder); got != "" {
				t.Errorf("%s The next reconcile emits %q", tc.reason, got)
			}
		})
	}
}

// outcome returns the target of application shop, with the reason and the message of
// its condition.
func outcome(t *testing.T, hub client.Client) string {
	t.Helper()
	app := &v1alpha2.KubernetesApplication{}
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "shop"}, app); err != nil {
		t.Fatal(err)
	}
	var at string
	if app.Spec.TargetRef != nil {
		at = app.Spec.TargetRef.Name
	}
	c := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.Scheduled)
	if c == nil {
		return at + " "
	}
	return at + " " + c.Reason + " " + c.Message
}

// evaluations returns the number of evaluations of policies.
func evaluations(t *testing.T, evaluator *decisions.Evaluator) int {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(evaluator)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		if family.GetName() == "policy_evaluations_total" {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return int(sum)
}

// TestMembersAreEvaluatedOnce counts the evaluations of a policy for an application
// that it denies: first for all members, and then only for changed members.
func TestMembersAreEvaluatedOnce(t *testing.T) {
	const members = 50
	objects := []client.Object{namespace(), target("eu"), newApplication("shop")}
	for i := range members {
		objects = append(objects, member(fmt.Sprintf("web-%02d", i)))
	}
	hub := hub(t, interceptor.Funcs{}, objects...)
	deny := func(code string) *policyv1alpha1.Policy {
		return rego("p", `deny contains {"code": "`+code+`", "msg": "no"} if input.object.metadata.name == "web-00"`)
	}
	e := engine.New(engine.Options{Timeout: time.Minute})
	e.Replace(t.Context(), []*policyv1alpha1.Policy{deny("A")})
	evaluator := decisions.New(e, "portico-system")
	a, load := controller(t, hub)
	a.reviews = policycheck.NewReviews(evaluator, "scheduler")
	update := func(name string, change func(*v1alpha1.KubernetesApplicationResource)) {
		r := &v1alpha1.KubernetesApplicationResource{}
		if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: name}, r); err != nil {
			t.Fatal(err)
		}
		change(r)
		if err := hub.Update(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		reason  string
		change  func()
		want    int
		outcome string
	}{
		{"All members are evaluated.", func() {}, members, " DeniedByPolicy policy p: A: no"},
		{"Nothing changed.", func() {}, 0, " DeniedByPolicy policy p: A: no"},
		{"A member is added.", func() {
			if err := hub.Create(t.Context(), member("more")); err != nil {
				t.Fatal(err)
			}
		}, 1, " DeniedByPolicy policy p: A: no"},
		{"A member changes.", func() {
			update("web-07", func(r *v1alpha1.KubernetesApplicationResource) {
				r.Spec.Template.Raw = []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web-07"},"spec":{"type":"NodePort"}}`)
			})
		}, 1, " DeniedByPolicy policy p: A: no"},
		{"Only the status of a member changes.", func() {
			update("web-08", func(r *v1alpha1.KubernetesApplicationResource) { r.Annotations = map[string]string{"a": "b"} })
		}, 0, " DeniedByPolicy policy p: A: no"},
		{"Another application was placed in the namespace.", func() {
			other := newApplication("other", template("x", "Service"))
			other.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu"}
			load.SetApplication(other)
		}, 0, " DeniedByPolicy policy p: A: no"},
		{"The policy changes.", func() { e.Apply(t.Context(), deny("B")) }, members + 1, " DeniedByPolicy policy p: B: no"},
		{"A policy is added.", func() {
			e.Apply(t.Context(), rego("q", `warn contains {"code": "W", "msg": "hm"} if input.object.kind == "None"`))
		}, members + 1, " DeniedByPolicy policy p: B: no"},
		{"The member that is denied is deleted.", func() {
			if err := hub.Delete(t.Context(), member("web-00")); err != nil {
				t.Fatal(err)
			}
		}, 0, "eu Scheduled application shop runs on target eu"},
		{"The application has to move, and no input changed.", func() {
			app := &v1alpha2.KubernetesApplication{}
			if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "shop"}, app); err != nil {
				t.Fatal(err)
			}
			app.Annotations = map[string]string{v1alpha1.MoveFromAnnotation: "eu"}
			if err := hub.Update(t.Context(), app); err != nil {
				t.Fatal(err)
			}
			if err := hub.Create(t.Context(), target("us")); err != nil {
				t.Fatal(err)
			}
		}, 0, "us Scheduled application shop runs on target us; eu is the target to leave"},
	}
	for _, step := range steps {
		step.change()
		before := evaluations(t, evaluator)
		if _, err := a.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "shop"}}); err != nil {
			t.Fatal(err)
		}
		if got := evaluations(t, evaluator) - before; got != step.want {
			t.Errorf("%s %d evaluations, want %d", step.reason, got, step.want)
		}
		if diff := cmp.Diff(step.outcome, outcome(t, hub)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
	}
}

// TestManyMembers places an application that takes many slices. No policy is evaluated
// twice for a member. The condition is written at most ten times, and members are not
// written.
func TestManyMembers(t *testing.T) {
	const members = 100
	objects := []client.Object{namespace(), target("eu"), newApplication("shop")}
	for i := range members {
		objects = append(objects, member(fmt.Sprintf("web-%03d", i)))
	}
	writes := map[string]int{}
	hub := hub(t, reconcilertest.Before(func(r reconcilertest.Request) error {
		if r.Subresource == "status" {
			writes[r.Type()]++
		}
		return nil
	}), objects...)
	e := engine.New(engine.Options{Timeout: time.Minute})
	e.Replace(t.Context(), []*policyv1alpha1.Policy{rego("p", `exclude contains {"target": t.metadata.name, "code": "Late", "msg": "late"} if {
	input.object.kind == "Service"
	some t in input.targets
	time.now_ns() < input.placed[t.metadata.name]
}`)})
	evaluator := decisions.New(e, "portico-system")
	a, load := controller(t, hub)
	a.reviews = policycheck.NewReviewsWithSlice(evaluator, "scheduler", time.Nanosecond)
	reconciles := 0
	for {
		reconciles++
		result, err := a.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "a", Name: "shop"}})
		if err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter == 0 {
			break
		}
		if got := outcome(t, hub); !strings.HasPrefix(got, " Progressing policies were evaluated for at least ") {
			t.Fatal(got)
		}
		// Other resources, which policies read, are placed in the meantime.
		r := newResource(fmt.Sprintf("other-%d", reconciles), "Service")
		r.Namespace, r.Spec.TargetRef = "a", &v1alpha1.TargetReference{Name: "eu"}
		load.SetResource(&r)
	}
	if got := evaluations(t, evaluator); got != members {
		t.Errorf("%d evaluations for %d members", got, members)
	}
	if reconciles != members {
		t.Errorf("%d reconciles, want one for each evaluation", reconciles)
	}
	if got := outcome(t, hub); got != "eu Scheduled application shop runs on target eu" {
		t.Error(got)
	}
	if diff := cmp.Diff(map[string]int{"KubernetesApplication": 11}, writes); diff != "" {
		t.Errorf("writes of a status (-want +got):\n%s", diff)
	}
}

func TestMemberChanged(t *testing.T) {
	was := member("web")
	edited, placed, leaving, left, deleted, touched := member("web"), member("web"), member("web"), member("web"), member("web"), member("web")
	edited.Generation = 2
	placed.Spec.TargetRef = &v1alpha1.TargetReference{Name: "eu"}
	placed.Generation = 2
	leaving.Spec.TargetRef, leaving.Spec.LeavingTargetRef = placed.Spec.TargetRef, &v1alpha1.TargetReference{Name: "us"}
	left.Spec.TargetRef = placed.Spec.TargetRef
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	touched.Annotations = map[string]string{"a": "b"}
	p := memberChanged()
	for name, tc := range map[string]struct{ got, want bool }{
		"a new member":                      {p.Create(event.CreateEvent{Object: was}), true},
		"a member with a target":            {p.Create(event.CreateEvent{Object: placed}), false},
		"an edited member":                  {p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: edited}), true},
		"a member whose annotation changed": {p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: touched}), false},
		"a member that got its target":      {p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: placed}), false},
		"a member that left a target":       {p.Update(event.UpdateEvent{ObjectOld: leaving, ObjectNew: left}), true},
		"a member that is being deleted":    {p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: deleted}), true},
		"a deleted member":                  {p.Delete(event.DeleteEvent{Object: was}), true},
		"a deleted member with a target":    {p.Delete(event.DeleteEvent{Object: placed}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s passes: %v, want %v", name, tc.got, tc.want)
		}
	}
}
