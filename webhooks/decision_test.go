package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
)

// rule returns a policy with one module. The package and the import are added to the
// rules.
func rule(t policyv1alpha1.PolicyType, name, rules string, action policyv1alpha1.Action) *policyv1alpha1.Policy {
	return &policyv1alpha1.Policy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1alpha1.PolicySpec{Type: t, Action: action, Modules: map[string]string{
			name + ".rego": fmt.Sprintf("package %s.example\n\nimport rego.v2\n\n%s\n", strings.ToLower(string(t)), rules),
		}},
	}
}

func ruledBy(t testing.TB, policies ...*policyv1alpha1.Policy) *decisions.Evaluator {
	t.Helper()
	e := engine.New(engine.Options{Timeout: time.Minute})
	e.Replace(context.Background(), policies)
	for _, state := range e.Policies() {
		if err := state.Err(); err != nil {
			t.Fatalf("policy %s: %v", state.Policy, err)
		}
	}
	return decisions.New(e, "portico-system")
}

const (
	remoteWeb = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {workload.crossplane.io/schedule: remote%s}}, spec: {replicas: %d}}`
	noMany    = `deny contains {"code": "TooMany", "msg": sprintf("asks for %d", [input.object.spec.replicas]), "field": "spec.replicas"} if input.object.spec.replicas > 3`
	noTeam    = `deny contains {"code": "NoTeam", "msg": "has no team", "field": "metadata.labels"} if not input.object.metadata.labels.team`
	onlyEU    = `exclude contains {"target": t.metadata.name, "code": "NotEU", "msg": "is not in the EU"} if { some t in input.targets; t.metadata.labels.region != "eu" }`
	fails     = `deny contains {"code": "A", "msg": "no"} if units.parse_bytes("12 parsecs") > 10`
)

func web(replicas int, labels ...string) string {
	more := ""
	for _, label := range labels {
		more += ", " + label
	}
	return fmt.Sprintf(remoteWeb, more, replicas)
}

// policyAnswer is the part of a response that depends on policies.
type policyAnswer struct {
	Code     int32
	Message  []string
	Warnings []string
	Audit    map[string]string // without the annotation of the revision
}

func evaluateRequest(t testing.TB, hooks http.Handler, a testRequest) policyAnswer {
	t.Helper()
	resp := submit(t, hooks, a)
	out := policyAnswer{Code: resp.Result.Code, Warnings: resp.Warnings, Audit: resp.AuditAnnotations}
	if resp.Result.Message != "" {
		out.Message = strings.Split(resp.Result.Message, "\n")
	}
	if _, evaluated := out.Audit["policies"]; evaluated && len(out.Audit["revision"]) == 0 {
		t.Error("the audit log is not told which policies were in force")
	}
	delete(out.Audit, "revision")
	return out
}

func TestSchedulingAtAdmission(t *testing.T) {
	scheduling := policyv1alpha1.Scheduling
	placed := func(on string) client.Object {
		app := application("default", on).(*v1alpha2.KubernetesApplication)
		app.Spec.TargetSelector = nil
		return app
	}
	eu, us := target("eu-1", map[string]string{"region": "eu"}), target("us-1", map[string]string{"region": "us"})
	many, team := rule(scheduling, "many", noMany, ""), rule(scheduling, "team", noTeam, "")
	region := rule(scheduling, "region", onlyEU, "")
	ok := http.StatusOK
	cases := map[string]struct {
		reason   string
		policies []*policyv1alpha1.Policy
		hub      []client.Object
		testRequest
		want policyAnswer
	}{
		"Denied": {
			reason:   "All findings are reported at once, by policy, code and field.",
			policies: []*policyv1alpha1.Policy{many, team}, hub: []client.Object{eu},
			testRequest: testRequest{object: web(5)},
			want: policyAnswer{
				Code:    http.StatusForbidden,
				Message: []string{"policy many: TooMany: asks for 5 (spec.replicas)", "policy team: NoTeam: has no team (metadata.labels)"},
				Audit:   map[string]string{"decision": "deny", "policies": "many,team", "codes": "NoTeam,TooMany"},
			},
		},
		"DeniedDry": {
			reason: "A dry run has the same result.", policies: []*policyv1alpha1.Policy{many}, hub: []client.Object{eu},
			testRequest: testRequest{object: web(5), dryRun: true},
			want:        policyAnswer{Code: http.StatusForbidden, Message: []string{"policy many: TooMany: asks for 5 (spec.replicas)"}, Audit: map[string]string{"decision": "deny", "policies": "many", "codes": "TooMany"}},
		},
		"Allowed": {
			reason: "An allowed request has no message, only an audit annotation.", policies: []*policyv1alpha1.Policy{many}, hub: []client.Object{eu},
			testRequest: testRequest{object: web(2)},
			want:        policyAnswer{Code: int32(ok), Audit: map[string]string{"decision": "allow"}},
		},
		"Warned": {
			reason:   "A finding with action Warn allows the request.",
			policies: []*policyv1alpha1.Policy{rule(scheduling, "many", noMany, policyv1alpha1.Warn)}, hub: []client.Object{eu},
			testRequest: testRequest{object: web(5)},
			want: policyAnswer{Code: int32(ok), Warnings: []string{"policy many: TooMany: asks for 5 (spec.replicas)"},
				Audit: map[string]string{"decision": "warn", "policies": "many", "codes": "TooMany"}},
		},
		"Audited": {
			reason:   "A finding with action Audit is only in the audit log.",
			policies: []*policyv1alpha1.Policy{rule(scheduling, "many", noMany, policyv1alpha1.Audit)}, hub: []client.Object{eu},
			testRequest: testRequest{object: web(5)},
			want:        policyAnswer{Code: int32(ok), Audit: map[string]string{"decision": "audit", "policies": "many", "codes": "TooMany"}},
		},
		"Broken": {
			reason:   "A failed evaluation is an internal error, and not an invalid request.",
			policies: []*policyv1alpha1.Policy{rule(scheduling, "errs", fails, "")}, hub: []client.Object{eu},
			testRequest: testRequest{object: web(1)},
			want: policyAnswer{Code: http.StatusInternalServerError, Message: []string{"policy errs: PolicyError: *"},
				Audit: map[string]string{"decision": "deny", "policies": "errs", "codes": "PolicyError"}},
		},
		"ExcludesAll": {
			reason:   "An object without an eligible target is accepted, with a warning for each target.",
			policies: []*policyv1alpha1.Policy{region}, hub: []client.Object{us, target("us-2", map[string]string{"region": "us"})},
			testRequest: testRequest{object: web(1)},
			want: policyAnswer{Code: int32(ok), Warnings: []string{
				"accepted, and waiting for a target: 0 of 2 targets match",
				"target us-1 is excluded by policy region: NotEU: is not in the EU",
				"target us-2 is excluded by policy region: NotEU: is not in the EU"},
				Audit: map[string]string{"decision": "unschedulable", "policies": "region", "codes": "NotEU"}},
		},
		"ExcludesSome": {
			reason: "Exclusions of other targets are not reported.", policies: []*policyv1alpha1.Policy{region}, hub: []client.Object{us, eu},
			testRequest: testRequest{object: web(1)},
			want:        policyAnswer{Code: int32(ok), Audit: map[string]string{"decision": "exclude", "policies": "region", "codes": "NotEU"}},
		},
		"JoinsWhereItMayNot": {
			reason:   "A new object cannot join an application on a target that policies exclude for it.",
			policies: []*policyv1alpha1.Policy{region}, hub: []client.Object{us, eu, placed("us-1")},
			testRequest: testRequest{object: web(1)},
			want: policyAnswer{Code: http.StatusForbidden, Message: []string{"policy region: NotEU: target us-1: is not in the EU"},
				Audit: map[string]string{"decision": "deny", "policies": "region", "codes": "NotEU"}},
		},
		"RunsWhereItMayNot": {
			reason:   "An object on an excluded target remains, and may be changed.",
			policies: []*policyv1alpha1.Policy{region}, hub: []client.Object{us, eu, placed("us-1")},
			testRequest: testRequest{object: web(2), old: web(1)},
			want: policyAnswer{Code: int32(ok), Warnings: []string{"policy region: NotEU: target us-1: is not in the EU"},
				Audit: map[string]string{"decision": "warn", "policies": "region", "codes": "NotEU", "target": "us-1"}},
		},
		"RunsAndIsDenied": {
			reason: "A running object cannot be changed to a denied one.", policies: []*policyv1alpha1.Policy{many}, hub: []client.Object{us, placed("us-1")},
			testRequest: testRequest{object: web(5), old: web(1)},
			want: policyAnswer{Code: http.StatusForbidden, Message: []string{"policy many: TooMany: asks for 5 (spec.replicas)"},
				Audit: map[string]string{"decision": "deny", "policies": "many", "codes": "TooMany"}},
		},
		"Noop": {
			reason: "An unchanged object is not evaluated.", policies: []*policyv1alpha1.Policy{many}, hub: []client.Object{eu},
			testRequest: testRequest{object: web(5), old: web(5)}, want: policyAnswer{Code: int32(ok)},
		},
		"Portico": {
			reason: "Portico's own writes are not evaluated.", policies: []*policyv1alpha1.Policy{many}, hub: []client.Object{eu},
			testRequest: testRequest{object: web(5), user: porticoUser}, want: policyAnswer{Code: int32(ok)},
		},
		"Local": {
			reason: "An object that remains on the hub is not evaluated.", policies: []*policyv1alpha1.Policy{many}, hub: []client.Object{eu},
			testRequest: testRequest{object: strings.Replace(web(5), "schedule: remote", "schedule: local", 1)}, want: policyAnswer{Code: int32(ok)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.path = NativePath
			got := evaluateRequest(t, serveReadOnly(t, ruledBy(t, tc.policies...), tc.hub...), tc.testRequest)
			for i, line := range got.Message { // the text after the code is the error of OPA
				if before, _, found := strings.Cut(line, "PolicyError: "); found {
					got.Message[i] = before + "PolicyError: *"
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNoPolicies: without policies, no resources are listed.
func TestNoPolicies(t *testing.T) {
	hooks := serveWithPolicies(ruledBy(t, rule(policyv1alpha1.Publish, "p", `deny contains {"code": "A", "msg": "no"}`, "")), noCounting{listing(t)})
	got := evaluateRequest(t, hooks, testRequest{path: NativePath, object: web(5)})
	if got.Code != http.StatusOK || got.Audit["policies"] != "" {
		t.Errorf("got %+v", got)
	}
}

func TestResourcesAtAdmission(t *testing.T) {
	scheduling := policyv1alpha1.Scheduling
	many := rule(scheduling, "many", noMany, "")
	many.Spec.Match = &policyv1alpha1.PolicyMatch{Kinds: []string{"Deployment"}}
	hooks := serveReadOnly(t, ruledBy(t, many, rule(scheduling, "region", onlyEU, "")),
		target("us-1", map[string]string{"region": "us"}), application("shop", "us-1"))

	template := func(replicas int) string {
		return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d}}`, replicas)
	}
	resource := func(replicas int, spec, labels string) string {
		return fmt.Sprintf(`{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web%s}, spec: {template: %s%s}}`, labels, template(replicas), spec)
	}
	app := func(spec string, replicas ...int) string {
		var templates []string
		for i, n := range replicas {
			templates = append(templates, fmt.Sprintf(`{metadata: {name: web-%d}, spec: {template: %s}}`, i, strings.Replace(template(n), "name: web", fmt.Sprintf("name: web-%d", i), 1)))
		}
		return fmt.Sprintf(`{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop}, spec: {resourceTemplates: [%s]%s}}`, strings.Join(templates, ", "), spec)
	}
	const waiting = "accepted, and waiting for a target: 0 of 1 targets match"
	const excluded = "target us-1 is excluded by policy region: NotEU: is not in the EU"
	cases := map[string]struct {
		reason string
		testRequest
		message, warnings []string
	}{
		"Resource": {
			reason: "The field is a field of the resource.", testRequest: testRequest{object: resource(5, "", "")},
			message: []string{"policy many: TooMany: asks for 5 (spec.template.spec.replicas)"},
		},
		"ResourceWaits": {reason: "The warning names the excluded target.", testRequest: testRequest{object: resource(1, "", "")}, warnings: []string{waiting, excluded}},
		"ResourceSentByHand": {
			reason: "A resource that names its target is evaluated, too.", testRequest: testRequest{object: resource(1, ", targetRef: {name: us-1}", "")},
			message: []string{"policy region: NotEU: target us-1: is not in the EU (spec.template)"},
		},
		"ResourceJoins": {
			reason: "A resource that joins an application on the target is evaluated, too.", testRequest: testRequest{object: resource(1, "", ", labels: {workload.crossplane.io/application: shop}")},
			message: []string{"policy region: NotEU: target us-1: is not in the EU (spec.template)"},
		},
		"ResourceSentLater": {
			reason:      "A resource that names its target later is evaluated, too.",
			testRequest: testRequest{object: resource(1, ", targetRef: {name: us-1}", ""), old: resource(1, "", "")},
			message:     []string{"policy region: NotEU: target us-1: is not in the EU (spec.template)"},
		},
		"ResourceChanges": {
			reason:      "A running object remains, and may be changed.",
			testRequest: testRequest{object: resource(2, ", targetRef: {name: us-1}", ""), old: resource(1, ", targetRef: {name: us-1}", "")},
			warnings:    []string{"policy region: NotEU: target us-1: is not in the EU (spec.template)"},
		},
		"ResourceNoop": {
			reason:      "An unchanged resource is not evaluated.",
			testRequest: testRequest{object: resource(5, "", ", labels: {a: b}"), old: resource(5, "", "")},
		},
		"ResourceOfPortico": {reason: "The native object was evaluated.", testRequest: testRequest{object: resource(5, "", ""), user: porticoUser}},
		"Application": {
			reason: "Every template is evaluated, and reported with its path.", testRequest: testRequest{object: app("", 5, 1, 7)},
			message: []string{
				"policy many: TooMany: asks for 5 (spec.resourceTemplates[0].spec.template.spec.replicas)",
				"policy many: TooMany: asks for 7 (spec.resourceTemplates[2].spec.template.spec.replicas)",
			},
		},
		"ApplicationWaits": {reason: "Each target is reported once for all templates.", testRequest: testRequest{object: app("", 1, 2)}, warnings: []string{waiting, excluded}},
		"ApplicationChanges": {
			reason: "Only changed templates are evaluated.", testRequest: testRequest{object: app("", 5, 2), old: app("", 5, 1)}, warnings: []string{waiting, excluded},
		},
		"ApplicationGrows": {
			reason:      "A new template is new on the target. The others remain.",
			testRequest: testRequest{object: app(", targetRef: {name: us-1}", 2, 1), old: app(", targetRef: {name: us-1}", 1)},
			message:     []string{"policy region: NotEU: target us-1: is not in the EU (spec.resourceTemplates[1].spec.template)"},
			warnings:    []string{"policy region: NotEU: target us-1: is not in the EU (spec.resourceTemplates[0].spec.template)"},
		},
		"ApplicationNoop": {reason: "Labels of the application are no labels of its objects.", testRequest: testRequest{object: app("", 5), old: strings.Replace(app("", 5), "name: shop}", "name: shop, labels: {a: b}}", 1)}},
		"ChangedOnceDeleted": {
			reason:      "An object that is being deleted is evaluated.",
			testRequest: testRequest{object: going(resource(5, "", "")), old: going(resource(1, "", ""))},
			message:     []string{"policy many: TooMany: asks for 5 (spec.template.spec.replicas)"},
		},
		"FinalizerGoes": {reason: "A change of finalizers is always allowed.", testRequest: testRequest{
			object: going(resource(5, "", "")), old: strings.Replace(going(resource(5, "", "")), "name: web,", "name: web, finalizers: [a/b],", 1)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.path = WorkloadPath
			got := evaluateRequest(t, hooks, tc.testRequest)
			want := policyAnswer{Code: http.StatusOK, Message: tc.message, Warnings: tc.warnings}
			if len(tc.message) > 0 {
				want.Code = http.StatusForbidden
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(policyAnswer{}, "Audit")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPublishAtAdmission(t *testing.T) {
	publish := policyv1alpha1.Publish
	hooks := serveReadOnly(t, ruledBy(t,
		rule(publish, "labels", `deny contains {"code": "NoEnv", "msg": sprintf("of namespace %s has no env", [input.namespace.metadata.labels.team]), "field": "metadata.labels"} if not input.target.metadata.labels.env`, ""),
		rule(publish, "twice", `warn contains {"code": "Twice", "msg": other.metadata.name} if some other in input.existing`, "")),
		&v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "other"}},
		&v1alpha1.KubernetesTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "eu"}},
		func() client.Object { n := namespace(nil); n.SetLabels(map[string]string{"team": "a"}); return n }(),
	)
	kt := func(labels, spec string) string {
		return fmt.Sprintf(`{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: us, labels: {%s}}, spec: {connectionSecretRef: {name: us}%s}}`, labels, spec)
	}
	denied := []string{"policy labels: NoEnv: of namespace a has no env (metadata.labels)"}
	twice := []string{"policy twice: Twice: eu"}
	cases := map[string]struct {
		reason string
		testRequest
		message, warnings []string
	}{
		"Create":             {reason: "The policies see the publisher.", testRequest: testRequest{object: kt("", "")}, message: denied, warnings: twice},
		"CreateDry":          {reason: "A dry run evaluates the policies, too.", testRequest: testRequest{object: kt("", ""), dryRun: true}, message: denied, warnings: twice},
		"Good":               {reason: "An allowed target is accepted.", testRequest: testRequest{object: kt("env: prod", "")}, warnings: twice},
		"Relabel":            {reason: "The removal of a label is evaluated.", testRequest: testRequest{object: kt("", ""), old: kt("env: prod", "")}, message: denied, warnings: twice},
		"Respec":             {reason: "A change of the connection is evaluated.", testRequest: testRequest{object: kt("", ", unschedulable: true"), old: kt("", "")}, message: denied, warnings: twice},
		"Noop":               {reason: "A change of annotations is not evaluated.", testRequest: testRequest{object: strings.Replace(kt("", ""), "name: us", "name: us, annotations: {a: b}", 1), old: kt("", "")}},
		"Portico":            {reason: "Portico's own requests are not evaluated.", testRequest: testRequest{object: kt("", ""), user: porticoUser}},
		"Status":             {reason: "A change of the status is not evaluated.", testRequest: testRequest{object: kt("", ""), old: kt("env: prod", ""), subresource: "status"}},
		"RelabelOnceDeleted": {reason: "A target that is being deleted is evaluated.", testRequest: testRequest{object: going(kt("", "")), old: going(kt("env: prod", ""))}, message: denied, warnings: twice},
		"FinalizerGoes": {reason: "A deletion is always allowed.", testRequest: testRequest{
			object: going(kt("", "")), old: strings.Replace(going(kt("", "")), "name: us,", "name: us, finalizers: [a/b],", 1)}},
		"Delete": {reason: "The start of a deletion is always allowed.", testRequest: testRequest{old: kt("", ""), operation: admissionv1.Delete}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.path = WorkloadPath
			got := evaluateRequest(t, hooks, tc.testRequest)
			want := policyAnswer{Code: http.StatusOK, Message: tc.message, Warnings: tc.warnings}
			if len(tc.message) > 0 {
				want.Code = http.StatusForbidden
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(policyAnswer{}, "Audit")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// noCounting fails when resources are listed.
type noCounting struct{ client.Reader }

func (n noCounting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, counts := list.(*v1alpha1.KubernetesApplicationResourceList); counts {
		return fmt.Errorf("another request is counting")
	}
	return n.Reader.List(ctx, list, opts...)
}

// listing is an empty hub.
func listing(t testing.TB) client.Reader {
	t.Helper()
	return empty{}
}

type empty struct{ client.Reader }

func (empty) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (empty) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
