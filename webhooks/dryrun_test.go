package webhooks

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// fakeTargets answers dry runs with answer, and records them.
type fakeTargets struct {
	answer    func(ctx context.Context, name string) policies.DryRun
	mu        sync.Mutex
	requested []string // "<target> <resource> <a + for each template>"
}

func (s *fakeTargets) ResourceOf(kind kinds.Kind, native *unstructured.Unstructured, _ string) (*v1alpha1.KubernetesApplicationResource, error) {
	template, err := kinds.Project(kind, native)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(template.Object)
	return &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{Name: native.GetName()},
		Spec:       v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{Raw: raw}},
	}, err
}

func (s *fakeTargets) DryRun(ctx context.Context, target *v1alpha1.KubernetesTarget, resource *v1alpha1.KubernetesApplicationResource, with []*unstructured.Unstructured) policies.DryRun {
	s.mu.Lock()
	s.requested = append(s.requested, strings.Join([]string{target.Name, resource.Name, strings.Repeat("+", len(with))}, " "))
	s.mu.Unlock()
	return s.answer(ctx, resource.Name)
}

func serveWithDryRuns(s DryRunner, timeout time.Duration, hub ...client.Object) http.Handler {
	server := webhook.NewServer(webhook.Options{})
	reader := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(hub...).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, byApplication).WithIndex(&v1alpha1.KubernetesTarget{}, policies.ConnectionSecretIndex, bySecret).WithIndex(&v1alpha1.KubernetesTarget{}, policies.RelatedTargetIndex, byRelation).WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.TargetIndex, byTarget).Build()
	Register(server, Options{
		Reader: reader, Live: reader, Identity: porticoUser, Scheme: scheme(), Secrets: liveSecrets{reader},
		Hub: authorizer{}, AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"},
		DryRunner: s, DryRunTimeout: timeout,
	})
	return server.WebhookMux()
}

func TestDryRuns(t *testing.T) {
	const (
		config   = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {a: b}}}}`
		labelled = `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplicationResource, metadata: {name: web, labels: {a: b}}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {a: b}}}}`
		one      = `{metadata: {name: one}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}}}`
		two      = `{metadata: {name: two}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: two}}}}`
		shop     = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop}, spec: {resourceTemplates: [` + one + `]}}`
		larger   = `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop}, spec: {resourceTemplates: [` + one + `, ` + two + `]}}`
	)
	eu, us := target("eu-1", nil), target("us-1", nil)
	quiet := target("quiet", nil)
	quiet.(*v1alpha1.KubernetesTarget).Spec.DryRun = v1alpha1.DryRunNever
	refuses := policies.DryRun{Result: policies.DryRunRefused, Message: "target eu-1 refused it: no"}
	forbidden := func(message ...string) policyAnswer {
		return policyAnswer{Code: http.StatusForbidden, Message: message, Audit: map[string]string{"target": "eu-1", "dry-run": "refused"}}
	}
	taken := func(result string) policyAnswer {
		return policyAnswer{Code: http.StatusOK, Audit: map[string]string{"target": "eu-1", "dry-run": result}}
	}
	cases := map[string]struct {
		reason string
		answer policies.DryRun
		hub    []client.Object
		testRequest
		want      policyAnswer
		requested []string
	}{
		"Refused":   {reason: "The refusal of the target is the refusal of the hub.", answer: refuses, hub: []client.Object{eu}, testRequest: testRequest{path: NativePath, object: web(1)}, want: forbidden(refuses.Message), requested: []string{"eu-1 web "}},
		"DryRun":    {reason: "A dry run on the hub has the same result.", answer: refuses, hub: []client.Object{eu}, testRequest: testRequest{path: NativePath, object: web(1), dryRun: true}, want: forbidden(refuses.Message), requested: []string{"eu-1 web "}},
		"Accepted":  {reason: "An accepted object has no warning.", answer: policies.DryRun{Result: policies.DryRunAccepted}, hub: []client.Object{eu}, testRequest: testRequest{path: NativePath, object: web(1)}, want: taken("accepted"), requested: []string{"eu-1 web "}},
		"Chosen":    {reason: "Without a target, the dry run is on the target that would be selected.", answer: refuses, hub: []client.Object{us, eu}, testRequest: testRequest{path: NativePath, object: web(1)}, want: forbidden(refuses.Message), requested: []string{"eu-1 web "}},
		"Scaled":    {reason: "A changed object is tried.", answer: refuses, hub: []client.Object{eu}, testRequest: testRequest{path: NativePath, object: web(2), old: web(1)}, want: forbidden(refuses.Message), requested: []string{"eu-1 web "}},
		"Unchanged": {reason: "A change that is not sent is not tried.", answer: refuses, hub: []client.Object{eu}, testRequest: testRequest{path: NativePath, object: web(1, "workload.crossplane.io/application: shop"), old: web(1)}, want: policyAnswer{Code: http.StatusOK}},
		"Portico":   {reason: "Portico's own writes are not tried.", answer: refuses, hub: []client.Object{eu}, testRequest: testRequest{path: NativePath, object: web(1), user: porticoUser}, want: policyAnswer{Code: http.StatusOK}},
		"OptedOut":  {reason: "A target may disable dry runs.", answer: refuses, hub: []client.Object{quiet}, testRequest: testRequest{path: NativePath, object: web(1)}, want: policyAnswer{Code: http.StatusOK}},
		"Nowhere":   {reason: "Without a target there is no dry run.", answer: refuses, testRequest: testRequest{path: NativePath, object: web(1)}, want: policyAnswer{Code: http.StatusOK, Warnings: []string{"accepted, and waiting for a target: no KubernetesTarget is published in namespace team-a"}, Audit: map[string]string{"decision": "unschedulable"}}},
		"Warned": {
			reason: "Warnings of the target, and the message of a missing answer, are warnings of the hub.",
			answer: policies.DryRun{Result: policies.DryRunUnanswered, Message: "accepted without asking", Warnings: []string{"target eu-1: old"}},
			hub:    []client.Object{eu}, testRequest: testRequest{path: NativePath, object: web(1)}, requested: []string{"eu-1 web "},
			want: policyAnswer{Code: http.StatusOK, Warnings: []string{"accepted without asking", "target eu-1: old"}, Audit: map[string]string{"target": "eu-1", "dry-run": "unanswered"}},
		},
		"Resource":          {reason: "Resources are tried.", answer: refuses, hub: []client.Object{eu}, testRequest: testRequest{path: WorkloadPath, object: config}, want: forbidden(refuses.Message), requested: []string{"eu-1 web "}},
		"ResourceUnchanged": {reason: "The labels of a resource are not sent.", answer: refuses, hub: []client.Object{eu}, testRequest: testRequest{path: WorkloadPath, object: labelled, old: config}, want: policyAnswer{Code: http.StatusOK}},
		"Templates":         {reason: "All templates are tried, with all templates of the application.", answer: refuses, hub: []client.Object{eu}, testRequest: testRequest{path: WorkloadPath, object: larger}, want: forbidden("spec.resourceTemplates[0].spec.template: "+refuses.Message, "spec.resourceTemplates[1].spec.template: "+refuses.Message), requested: []string{"eu-1 one ++", "eu-1 two ++"}},
		"NewTemplate":       {reason: "Only new templates are tried.", answer: refuses, hub: []client.Object{eu}, testRequest: testRequest{path: WorkloadPath, object: larger, old: shop}, want: forbidden("spec.resourceTemplates[1].spec.template: " + refuses.Message), requested: []string{"eu-1 two ++"}},
		"TemplatesAccepted": {reason: "The audit log has the worst result.", answer: policies.DryRun{Result: policies.DryRunSkipped}, hub: []client.Object{eu}, testRequest: testRequest{path: WorkloadPath, object: larger}, want: taken("skipped"), requested: []string{"eu-1 one ++", "eu-1 two ++"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &fakeTargets{answer: func(context.Context, string) policies.DryRun { return tc.answer }}
			got := evaluateRequest(t, serveWithDryRuns(s, time.Minute, tc.hub...), tc.testRequest)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			slices.Sort(s.requested)
			if diff := cmp.Diff(tc.requested, s.requested, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: asked (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDryRunTimeout: a dry run on a target that hangs ends after its own timeout or
// that of the API server, whichever is shorter.
func TestDryRunTimeout(t *testing.T) {
	hangs := func(ctx context.Context, _ string) policies.DryRun {
		<-ctx.Done()
		return policies.UnansweredDryRun("eu-1", "does not answer in time")
	}
	for name, tc := range map[string]struct {
		timeout time.Duration
		path    string
	}{
		"Own":         {timeout: time.Millisecond, path: NativePath},
		"APIServer's": {timeout: time.Hour, path: NativePath + "?timeout=50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			got := evaluateRequest(t, serveWithDryRuns(&fakeTargets{answer: hangs}, tc.timeout, target("eu-1", nil)), testRequest{path: tc.path, object: web(1)})
			want := policyAnswer{Code: http.StatusOK, Audit: map[string]string{"target": "eu-1", "dry-run": "unanswered"},
				Warnings: []string{"accepted without a dry run on target eu-1, which does not answer in time; the target may still refuse it"}}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDryRunsAreConcurrent: requests do not wait for each other.
func TestDryRunsAreConcurrent(t *testing.T) {
	const requests = 32
	var here sync.WaitGroup
	here.Add(requests)
	s := &fakeTargets{answer: func(context.Context, string) policies.DryRun {
		here.Done()
		here.Wait() // returns when all dry runs have begun
		return policies.DryRun{Result: policies.DryRunAccepted}
	}}
	hooks := serveWithDryRuns(s, time.Minute, target("eu-1", nil))
	var done sync.WaitGroup
	for range requests {
		done.Go(func() { evaluateRequest(t, hooks, testRequest{path: NativePath, object: web(1)}) })
	}
	done.Wait()
}
