package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

func TestLimiter(t *testing.T) {
	now := time.Unix(0, 0)
	l := newLimiter(Limit{QPS: 2, Burst: 3})
	l.now = func() time.Time { return now }
	allowed := func(key ...string) (out int) {
		for range 10 {
			if l.allow(key...) {
				out++
			}
		}
		return out
	}
	if got := allowed("eve"); got != 3 {
		t.Errorf("want the burst at once, 3, got %d", got)
	}
	if got := allowed("jane"); got != 3 {
		t.Errorf("want a burst for each key, 3, got %d", got)
	}
	if got := allowed("ev", "e"); got != 3 {
		t.Errorf("want keys kept apart, got %d", got)
	}
	now = now.Add(time.Second)
	if got := allowed("eve"); got != 2 {
		t.Errorf("want 2 for each second, got %d", got)
	}
	for i := range 2 * maxLimiterKeys {
		l.allow(fmt.Sprintf("invented-%d", i))
	}
	if got := l.buckets.Len(); got > maxLimiterKeys {
		t.Errorf("want at most %d users remembered, got %d", maxLimiterKeys, got)
	}
	if unlimited := newLimiter(Limit{}); !unlimited.allow("eve") || unlimited.buckets.Len() > 0 {
		t.Error("want no limit, and nothing remembered, by default")
	}
}

// TestDryRunsAreLimited sends reviews without authentication. Above the limit the
// response has a warning, and is never a denial.
func TestDryRunsAreLimited(t *testing.T) {
	deploys := func(user string) testRequest { return testRequest{path: NativePath, object: web(1), user: user} }
	templates := func(user string, n int) testRequest {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{metadata: {name: t%[1]d}, spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: t%[1]d}}}}`, i))
		}
		return testRequest{path: WorkloadPath, user: user, object: `{apiVersion: workload.crossplane.io/v1alpha2, kind: KubernetesApplication, metadata: {name: shop}, spec: {resourceTemplates: [` + strings.Join(all, ", ") + `]}}`}
	}
	users := func(n int) (out []testRequest) {
		for i := range n {
			out = append(out, deploys(fmt.Sprintf("invented-%d", i)))
		}
		return out
	}
	times := func(n int, a testRequest) (out []testRequest) {
		for range n {
			out = append(out, a)
		}
		return out
	}
	cases := map[string]struct {
		reason    string
		limits    Limits
		requests  []testRequest
		requested int
		warned    int
	}{
		"WithinBurst": {reason: "An installation of many objects is tried completely.", limits: Limits{DryRunsOfUser: Limit{1, 500}, DryRunsOnTarget: Limit{1, 500}}, requests: times(500, deploys("jane")), requested: 500},
		"OneUser":     {reason: "Above the limit of a user, dry runs are skipped.", limits: Limits{DryRunsOfUser: Limit{1e-9, 2}}, requests: times(5, deploys("eve")), requested: 2, warned: 3},
		"OtherUser":   {reason: "The limit of a user does not affect others.", limits: Limits{DryRunsOfUser: Limit{1e-9, 2}}, requests: append(times(3, deploys("eve")), deploys("jane")), requested: 3, warned: 1},
		"MadeUpUsers": {reason: "Invented user names do not exceed the limit of the target.", limits: Limits{DryRunsOfUser: Limit{1e-9, 2}, DryRunsOnTarget: Limit{1e-9, 7}}, requests: users(20), requested: 7, warned: 13},
		"Templates":   {reason: "Each template of an application counts.", limits: Limits{DryRunsOfUser: Limit{1e-9, 4}}, requests: times(1, templates("eve", 10)), requested: 4, warned: 1},
		"Unlimited":   {reason: "Without a limit every object is tried.", requests: times(50, deploys("jane")), requested: 50},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := target("eu-1", nil)
			s := &fakeTargets{answer: func(context.Context, string) policies.DryRun {
				return policies.DryRun{Result: policies.DryRunAccepted}
			}}
			server := webhook.NewServer(webhook.Options{})
			reader := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(target).
				WithIndex(&v1alpha1.KubernetesApplicationResource{}, policies.ApplicationIndex, byApplication).Build()
			Register(server, Options{
				Reader: reader, Live: reader, Identity: porticoUser, Scheme: scheme(), Secrets: liveSecrets{reader},
				Hub: authorizer{}, AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"},
				DryRunner: s, DryRunTimeout: time.Minute, Limits: tc.limits,
			})
			warned := 0
			for _, a := range tc.requests {
				got := evaluateRequest(t, server.WebhookMux(), a)
				if got.Code != http.StatusOK {
					t.Fatalf("%s: refused with %v", tc.reason, got.Message)
				}
				if len(got.Warnings) == 0 {
					continue
				}
				warned++
				want := policyAnswer{Code: http.StatusOK, Audit: map[string]string{"target": "eu-1", "dry-run": "unanswered"},
					Warnings: []string{"accepted without a dry run on target eu-1, which had too many dry runs; the target may still refuse it"}}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
			if len(s.requested) != tc.requested || warned != tc.warned {
				t.Errorf("%s: want %d dry runs and %d warnings, got %d and %d", tc.reason, tc.requested, tc.warned, len(s.requested), warned)
			}
		})
	}
}

// TestAccessReviewsAreLimited: above the limit, requests are refused, because the
// user's rights are not known. Clients retry such a request.
func TestAccessReviewsAreLimited(t *testing.T) {
	publish := func(user string) testRequest {
		return testRequest{path: WorkloadPath, user: user,
			object: `{apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesTarget, metadata: {name: eu-1}, spec: {connectionSecretRef: {name: eu-1}}}`}
	}
	cases := map[string]struct {
		reason    string
		limits    Limits
		users     []string
		requested int
		last      int32
	}{
		"OneUser":     {reason: "Above the limit of a user, access reviews are refused.", limits: Limits{AccessReviewsOfUser: Limit{1e-9, 2}}, users: []string{"eve", "eve", "eve"}, requested: 2, last: http.StatusTooManyRequests},
		"OtherUser":   {reason: "The limit of a user does not affect others.", limits: Limits{AccessReviewsOfUser: Limit{1e-9, 2}}, users: []string{"eve", "eve", "eve", "jane"}, requested: 3, last: http.StatusOK},
		"MadeUpUsers": {reason: "Invented user names do not exceed the limit of all users.", limits: Limits{AccessReviewsOfUser: Limit{1e-9, 2}, AccessReviews: Limit{1e-9, 3}}, users: []string{"a", "b", "c", "d", "e"}, requested: 3, last: http.StatusTooManyRequests},
		"Portico":     {reason: "Portico's own requests need no review.", limits: Limits{AccessReviewsOfUser: Limit{1e-9, 1}, AccessReviews: Limit{1e-9, 1}}, users: []string{"eve", "eve", porticoUser}, requested: 1, last: http.StatusOK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var reviews []authorizationv1.SubjectAccessReviewSpec
			server := webhook.NewServer(webhook.Options{})
			reader := fake.NewClientBuilder().WithScheme(scheme()).Build()
			Register(server, Options{
				Reader: reader, Live: reader, Identity: porticoUser, Scheme: scheme(), Secrets: liveSecrets{reader},
				Hub: authorizer{requested: &reviews}, AllowDefaults: policies.AllowDefaults{PorticoNamespace: "portico-system"}, Limits: tc.limits,
			})
			var last *metav1.Status
			for _, user := range tc.users {
				resp := submit(t, server.WebhookMux(), publish(user))
				last = resp.Result
				if resp.Allowed != (last.Code == http.StatusOK) {
					t.Fatalf("%s: allowed %t with %v", tc.reason, resp.Allowed, last)
				}
			}
			if len(reviews) != tc.requested || last.Code != tc.last {
				t.Errorf("%s: want %d access reviews and code %d at last, got %d and %v", tc.reason, tc.requested, tc.last, len(reviews), last)
			}
			if last.Code == http.StatusTooManyRequests &&
				(last.Reason != metav1.StatusReasonTooManyRequests || last.Details == nil || last.Details.RetryAfterSeconds == 0 || !strings.Contains(last.Message, "try again")) {
				t.Errorf("want an answer that clients retry, got %+v", last)
			}
		})
	}
}

// TestAuthentication: the webhooks only serve API servers. Conversion is served to all
// clients, because API servers have no credentials for it.
func TestAuthentication(t *testing.T) {
	server := webhook.NewServer(webhook.Options{})
	var reader client.Reader = fake.NewClientBuilder().WithScheme(scheme()).Build()
	Register(server, Options{
		Reader: reader, Live: reader, Identity: porticoUser, Scheme: scheme(), Secrets: liveSecrets{reader}, Hub: authorizer{},
		Authenticate: func(*http.Request) error { return errors.New("no certificate") },
	})
	for _, path := range append([]string{ConvertPath}, Paths...) {
		w := httptest.NewRecorder()
		server.WebhookMux().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}")))
		if refused := w.Code == http.StatusUnauthorized; refused != (path != ConvertPath) {
			t.Errorf("%s answers with HTTP status %d: %s", path, w.Code, w.Body)
		}
	}
}
