package clusters

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/clusters/limits"
)

// TestLabelPages limits the pages of the list of objects without a label. A target may
// continue the list without end.
func TestLabelPages(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		pages  int64 // 0 is endless
		want   bool
	}{
		"One":     {reason: "A list of one page is complete.", pages: 1, want: true},
		"Several": {reason: "A list of several pages is complete.", pages: 6, want: true},
		"Endless": {reason: "The number of pages is limited."},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page, next := requests.Add(1), ""
				if tc.pages == 0 || page < tc.pages {
					next = "more"
				}
				if !strings.Contains(r.URL.Query().Get("labelSelector"), "!"+v1alpha1.HubNamespaceLabel) {
					t.Errorf("%s lists objects with the label", r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":%q},"items":[]}`, next)
			}))
			defer server.Close()
			bounds := limits.Limits{Objects: 1000, Backoff: time.Hour}
			c := &Connection{
				config: &rest.Config{Host: server.URL}, http: server.Client(), options: Options{HubID: "hub", Timeout: time.Minute},
				limiter: limits.NewLimiter(bounds, limits.NewBudget(bounds)),
			}
			mapping := &meta.RESTMapping{Resource: configMaps.GroupVersion().WithResource("configmaps"), GroupVersionKind: configMaps, Scope: meta.RESTScopeNamespace}
			none, err := c.labelObjects(t.Context(), "team-a", configMaps, mapping)
			if none != tc.want || (err == nil) != tc.want {
				t.Errorf("%s: none lacks the label: %t, error %v", tc.reason, none, err)
			}
			exceeded := errors.As(err, new(*limits.Exceeded))
			if exceeded != (tc.pages == 0) || exceeded && requests.Load() > int64(maxLabelPages(bounds)) {
				t.Errorf("%s: %d requests, error %v", tc.reason, requests.Load(), err)
			}
		})
	}
}
