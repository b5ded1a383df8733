package webhooks

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/policies/engine"
)

func TestBudget(t *testing.T) {
	for query, waits := range map[string]time.Duration{
		"?timeout=20s": 20 * time.Second, "?timeout=1000s": 1000 * time.Second,
		"": defaultTimeout, "?timeout=": defaultTimeout, "?timeout=soon": defaultTimeout, "?timeout=-3s": defaultTimeout,
	} {
		t.Run(query, func(t *testing.T) {
			began := time.Now()
			served := false
			withDeadline(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				served = true
				deadline, ok := r.Context().Deadline()
				if !ok || deadline.Before(began.Add(waits/10*9)) || deadline.After(began.Add(waits)) {
					t.Errorf("has until %v, want nine tenths of %v after %v", deadline, waits, began)
				}
			})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/"+query, nil))
			if !served {
				t.Error("no request was made")
			}
		})
	}
}

// TestRequestsWaitForPolicies: no request is decided before all policies are loaded.
func TestRequestsWaitForPolicies(t *testing.T) {
	policies := engine.New(engine.Options{})
	calls := 0
	handle := waitForPolicies(policies, func(context.Context, admission.Request) (admission.Response, error) {
		calls++
		return admission.Allowed(""), nil
	})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := handle(over, admission.Request{}); err == nil || calls != 0 {
		t.Errorf("decided before the policies were loaded (%v)", err)
	}
	answered := make(chan error)
	go func() {
		_, err := handle(t.Context(), admission.Request{})
		answered <- err
	}()
	policies.Replace(t.Context(), nil)
	if err := <-answered; err != nil || calls != 1 {
		t.Errorf("did not decide once they were: %v", err)
	}
}
