package webhooks

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConverter answers a ConversionReview of an API server. Only field names change.
func TestConverter(t *testing.T) {
	handler, err := converter()
	if err != nil {
		t.Fatal(err)
	}
	convert := func(apiVersion, object string) *apiextensionsv1.ConversionResponse {
		t.Helper()
		review := `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {"uid": "1", "desiredAPIVersion": "` + apiVersion + `", "objects": [` + object + `]}}`
		recorded := httptest.NewRecorder()
		handler.ServeHTTP(recorded, httptest.NewRequestWithContext(t.Context(), http.MethodPost, ConvertPath, strings.NewReader(review)))
		var answer apiextensionsv1.ConversionReview
		if err := json.Unmarshal(recorded.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%v: %s", err, recorded.Body)
		}
		return answer.Response
	}
	cases := map[string]struct {
		reason, from, apiVersion, want string
	}{
		"Up": {
			reason:     "A selector with empty matchLabels remains one.",
			from:       `{"apiVersion": "workload.crossplane.io/v1alpha1", "kind": "KubernetesApplication", "metadata": {"name": "a", "uid": "b"}, "spec": {"clusterSelector": {"matchLabels": {}}, "clusterRef": {"name": "c"}}}`,
			apiVersion: "workload.crossplane.io/v1alpha2",
			want:       `{"apiVersion": "workload.crossplane.io/v1alpha2", "kind": "KubernetesApplication", "metadata": {"name": "a", "uid": "b"}, "spec": {"targetSelector": {"matchLabels": {}}, "targetRef": {"name": "c"}}}`,
		},
		"Down": {
			reason:     "Numbers keep all their digits.",
			from:       `{"apiVersion": "workload.crossplane.io/v1alpha2", "kind": "KubernetesApplication", "metadata": {"name": "a"}, "spec": {"targetSelector": {}, "resourceTemplates": [{"spec": {"template": {"n": 9007199254740993}}}]}}`,
			apiVersion: "workload.crossplane.io/v1alpha1",
			want:       `{"apiVersion": "workload.crossplane.io/v1alpha1", "kind": "KubernetesApplication", "metadata": {"name": "a"}, "spec": {"clusterSelector": {}, "resourceTemplates": [{"spec": {"template": {"n": 9007199254740993}}}]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := convert(tc.apiVersion, tc.from)
			if answer.Result.Status != metav1.StatusSuccess || len(answer.ConvertedObjects) != 1 {
				t.Fatalf("%s: %+v", tc.reason, answer.Result)
			}
			if diff := cmp.Diff(numbers(t, []byte(tc.want)), numbers(t, answer.ConvertedObjects[0].Raw)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	for reason, object := range map[string]string{
		"a kind of which there are no versions": `{"apiVersion": "workload.crossplane.io/v1alpha1", "kind": "KubernetesTarget"}`,
		"the version that it has":               `{"apiVersion": "workload.crossplane.io/v1alpha2", "kind": "KubernetesApplication"}`,
	} {
		if answer := convert("workload.crossplane.io/v1alpha2", object); answer.Result.Status != metav1.StatusFailure {
			t.Errorf("%s is converted: %+v", reason, answer.Result)
		}
	}
}

// TestConversionLimit sends bodies around the limit, with and without a Content-Length.
func TestConversionLimit(t *testing.T) {
	const limit = 100
	var read int
	handler := limitBody(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if read = len(data); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}), limit)
	for name, tc := range map[string]struct {
		reason   string
		bytes    int
		chunked  bool
		want     int
		wantRead int
	}{
		"Small":   {reason: "A body up to the limit passes.", bytes: limit, want: http.StatusOK, wantRead: limit},
		"Large":   {reason: "A larger one is not read.", bytes: limit + 1, want: http.StatusRequestEntityTooLarge},
		"Chunked": {reason: "Without a length, no more than the limit is read.", bytes: 10 * limit, chunked: true, want: http.StatusBadRequest, wantRead: limit},
	} {
		t.Run(name, func(t *testing.T) {
			read = 0
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, ConvertPath, strings.NewReader(strings.Repeat("x", tc.bytes)))
			if tc.chunked {
				req.ContentLength = -1
			}
			recorded := httptest.NewRecorder()
			handler.ServeHTTP(recorded, req)
			if recorded.Code != tc.want || read != tc.wantRead {
				t.Errorf("%s: status %d after %d bytes, want %d after %d", tc.reason, recorded.Code, read, tc.want, tc.wantRead)
			}
		})
	}
}

// numbers decodes JSON, and keeps every digit of its numbers.
func numbers(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var out map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}
