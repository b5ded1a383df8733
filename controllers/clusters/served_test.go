package clusters

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestServed finds the version in which a target serves a kind. The object was applied
// in a version that the target dropped, and is deleted, or leaves the target.
func TestServed(t *testing.T) {
	pond := schema.GroupKind{Group: "versions.example.org", Kind: "Pond"}
	for name, tc := range map[string]struct {
		reason string
		// served are the versions of the group, in the order of preference, each with its
		// kinds.
		served [][2]string
		broken string // a version whose resources cannot be listed
		want   string
		absent bool
	}{
		"Same":      {reason: "The version of the object is served.", served: [][2]string{{"v1", "Pond"}, {"v1beta1", "Pond"}}, want: "v1beta1"},
		"Dropped":   {reason: "Another version is served, the preferred one first.", served: [][2]string{{"v2", "Pond"}, {"v1", "Pond"}}, want: "v2"},
		"Preferred": {reason: "The preferred version may lack the kind.", served: [][2]string{{"v2", "Lake"}, {"v1", "Pond"}}, want: "v1"},
		"NoKind":    {reason: "No version serves the kind.", served: [][2]string{{"v1", "Lake"}}, absent: true},
		"NoGroup":   {reason: "No version of the group is served.", absent: true},
		"Broken":    {reason: "A version that does not respond may serve the kind.", served: [][2]string{{"v2", "Pond"}, {"v1", "Pond"}}, broken: "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				version, isGroup := strings.CutPrefix(r.URL.Path, "/apis/"+pond.Group+"/")
				switch {
				case r.URL.Path == "/apis":
					var versions []string
					for _, served := range tc.served {
						versions = append(versions, fmt.Sprintf(`{"groupVersion":"%s/%s","version":%q}`, pond.Group, served[0], served[0]))
					}
					groups := ""
					if len(versions) > 0 {
						groups = fmt.Sprintf(`{"name":%q,"versions":[%s],"preferredVersion":%s}`, pond.Group, strings.Join(versions, ","), versions[0])
					}
					_, _ = fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[%s]}`, groups)
					return
				case isGroup && version == tc.broken:
					http.Error(w, "{}", http.StatusServiceUnavailable)
					return
				case isGroup:
					for _, served := range tc.served {
						if served[0] == version {
							_, _ = fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/%s","resources":[{"name":"ponds","kind":%q,"namespaced":true}]}`,
								pond.Group, version, served[1])
							return
						}
					}
				}
				http.NotFound(w, r)
			}))
			defer server.Close()
			c := &Connection{config: &rest.Config{Host: server.URL}, http: server.Client(), options: Options{Timeout: time.Minute}}
			was := pond.WithVersion("v1beta1")
			c.MarkVersionDropped(was)
			got, err := c.Served(was)
			if meta.IsNoMatchError(err) != tc.absent || (err != nil) != (tc.absent || tc.broken != "") {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if err == nil && got != pond.WithVersion(tc.want) {
				t.Errorf("%s: %s, want version %s", tc.reason, got, tc.want)
			}
			if dropped := c.IsVersionDropped(was); dropped == (tc.want == "v1beta1") {
				t.Errorf("%s: the version of the object is dropped: %t", tc.reason, dropped)
			}
		})
	}
}
