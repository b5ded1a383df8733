package policy

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/controllers/reconciler/reconcilertest"
	"github.com/portico-io/portico/policies/engine"
)

// shippedAs returns policy x as a version of Portico ships it.
func shippedAs(modules ...string) *policyv1alpha1.Policy {
	policy := written(modules...)
	policy.Annotations = map[string]string{policyv1alpha1.EmbeddedRevisionAnnotation: engine.Revision(policy.Spec)}
	return policy
}

func edited() *policyv1alpha1.Policy {
	policy := shippedAs(rules)
	policy.Spec.Modules["x.rego"] = rules + "\n# edited\n"
	return policy
}

// TestReconcile tests the order of requests, and failing requests.
func TestReconcile(t *testing.T) {
	failure := errors.New("failure")
	library := shippedAs(rules)
	library.Name, library.Spec.Type = "lib", policyv1alpha1.Library
	audit := &policyv1alpha1.PolicyAudit{Violations: 2, LastRun: metav1.Now().Rfc3339Copy()}
	deleting := written(rules)
	now := metav1.Now()
	deleting.DeletionTimestamp, deleting.Finalizers = &now, []string{"example.org/keep"}

	cases := map[string]struct {
		reason     string
		hub        *policyv1alpha1.Policy
		loaded     *policyv1alpha1.Policy // in the engine
		shipped    []*policyv1alpha1.Policy
		audit      *policyv1alpha1.PolicyAudit
		fail       map[string]error
		sent       []string
		err        error
		requeue    bool
		ready      string
		violations int32
		events     int
	}{
		"Gone":     {reason: "A deleted policy of a user needs no work."},
		"Deleting": {reason: "A policy that is being deleted has no new status.", hub: deleting, loaded: written(rules)},
		"Missing":  {reason: "A shipped policy is created.", shipped: []*policyv1alpha1.Policy{shippedAs(rules)}, sent: []string{"create x"}},
		"MissingLibrary": {reason: "A policy waits for the libraries.", shipped: []*policyv1alpha1.Policy{shippedAs(rules), library},
			requeue: true},
		"CreateFails": {reason: "A failed creation is tried again.", shipped: []*policyv1alpha1.Policy{shippedAs(rules)},
			fail: map[string]error{"create x": failure}, err: failure, sent: []string{"create x"}},
		"New": {reason: "The status says that the policy is loaded.", hub: written(rules), loaded: written(rules),
			sent: []string{"patch status of x"}, ready: policyv1alpha1.ReasonActive, events: 1},
		"NotLoaded": {reason: "There is no new status while the loader has an older revision.", hub: written(rules), loaded: written(broken)},
		"Audited": {reason: "The status has the result of the audit.", hub: written(rules), loaded: written(rules), audit: audit,
			sent: []string{"patch status of x"}, ready: policyv1alpha1.ReasonActive, violations: 2, events: 1},
		"StatusFails": {reason: "There is no event if the status was not written.", hub: written(rules), loaded: written(rules),
			fail: map[string]error{"patch status of x": failure}, err: failure, sent: []string{"patch status of x"}},
		"Older": {reason: "A policy that no user edited is upgraded, and described after its update.", hub: shippedAs(broken), loaded: shippedAs(broken),
			shipped: []*policyv1alpha1.Policy{shippedAs(rules)}, sent: []string{"patch x"}},
		"UpgradeFails": {reason: "A failed upgrade is tried again.", hub: shippedAs(broken), loaded: shippedAs(broken),
			shipped: []*policyv1alpha1.Policy{shippedAs(rules)}, fail: map[string]error{"patch x": failure}, err: failure, sent: []string{"patch x"}},
		"Edited": {reason: "A policy that a user edited is not upgraded.", hub: edited(), loaded: edited(),
			shipped: []*policyv1alpha1.Policy{shippedAs(rules, tests)}, sent: []string{"patch status of x"}, ready: policyv1alpha1.ReasonActive, events: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requests := &reconcilertest.Requests{Fail: tc.fail}
			recorder := events.NewFakeRecorder(10)
			c := controllerWith(t, requests, recorder, tc.hub, tc.loaded)
			c.audits.last = map[string]*policyv1alpha1.PolicyAudit{"x": tc.audit}
			for _, policy := range tc.shipped {
				c.shipped[policy.Name] = policy
			}
			for round, want := range [][]string{tc.sent, nil} {
				requests.Sent = nil
				result, err := c.Reconcile(t.Context(), request("x"))
				if !errors.Is(err, tc.err) {
					t.Errorf("error %v, want %v: %s", err, tc.err, tc.reason)
				}
				if (result.RequeueAfter > 0) != tc.requeue {
					t.Errorf("requeue after %s: %s", result.RequeueAfter, tc.reason)
				}
				if diff := cmp.Diff(want, requests.Sent); diff != "" {
					t.Errorf("round %d: %s (-want +got):\n%s", round, tc.reason, diff)
				}
				if tc.ready == "" {
					break // only after a written status the second reconcile sends no requests
				}
			}
			expectStatus(t, c.hub, tc.ready, tc.violations)
			if len(recorder.Events) != tc.events {
				t.Errorf("%d events, want %d: %s", len(recorder.Events), tc.events, tc.reason)
			}
		})
	}
}

func controllerWith(t *testing.T, requests *reconcilertest.Requests, recorder *events.FakeRecorder, stored, loaded *policyv1alpha1.Policy) *Controller {
	t.Helper()
	scheme := reconcilertest.Scheme(t, policyv1alpha1.AddToScheme)
	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&policyv1alpha1.Policy{}).WithInterceptorFuncs(requests.Funcs())
	if stored != nil {
		b = b.WithObjects(stored.DeepCopy())
	}
	hub := b.Build()
	e := engine.New(engine.Options{})
	if loaded != nil {
		e.Apply(t.Context(), loaded)
	}
	return &Controller{
		hub: hub, writer: reconciler.Writer{Client: hub, Owner: policyv1alpha1.PolicyManager}, engine: e,
		recorder: recorder, shipped: map[string]*policyv1alpha1.Policy{}, audits: &auditor{},
	}
}

func expectStatus(t *testing.T, hub client.Client, ready string, violations int32) {
	t.Helper()
	policy := &policyv1alpha1.Policy{}
	if err := hub.Get(t.Context(), client.ObjectKey{Name: "x"}, policy); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	var reason string
	if c := meta.FindStatusCondition(policy.Status.Conditions, policyv1alpha1.Ready); c != nil {
		reason = c.Reason
	}
	if reason != ready {
		t.Errorf("Ready has the reason %q, want %q", reason, ready)
	}
	if audit := policy.Status.Audit; (audit != nil || violations != 0) && (audit == nil || audit.Violations != violations) {
		t.Errorf("audit %v, want %d violations", audit, violations)
	}
}
