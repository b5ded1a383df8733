package webhooks

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/utils/ptr"

	"github.com/portico-io/portico/policies"
)

// otlpCollector receives spans, as the collector at --tracing-endpoint does.
type otlpCollector struct {
	collector.UnimplementedTraceServiceServer
	received chan *tracev1.Span
}

func (c *otlpCollector) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				c.received <- span
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// startCollector starts a collector, and the provider that exports spans to it.
func startCollector(t *testing.T) (*otlpCollector, tracing.TracerProvider) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &otlpCollector{received: make(chan *tracev1.Span, 100)}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	provider, err := tracing.NewProvider(t.Context(), &tracingapi.TracingConfiguration{Endpoint: ptr.To(listener.Addr().String())}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, provider
}

// TestTracing follows an admission request with the trace context of an API server. The
// span of the request, that of the dry run, and that of the request to the target form
// one trace, and the target gets its context.
func TestTracing(t *testing.T) {
	const (
		traceID    = "4bf92f3577b34da6a3ce929d0e0e4736"
		serverSpan = "00f067aa0ba902b7"
	)
	c, provider := startCollector(t)
	previous := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	t.Cleanup(func() { otel.SetTracerProvider(previous) })

	var traceparent string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { traceparent = r.Header.Get("Traceparent") }))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.Wrap(tracing.WrapperFor(otel.GetTracerProvider()))
	targetClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	targets := &fakeTargets{answer: func(ctx context.Context, _ string) policies.DryRun {
		req, err := http.NewRequestWithContext(ctx, http.MethodPatch, server.URL, http.NoBody)
		if err != nil {
			t.Error(err)
			return policies.DryRun{}
		}
		resp, err := targetClient.Do(req)
		if err != nil {
			t.Error(err)
			return policies.DryRun{}
		}
		_ = resp.Body.Close()
		return policies.DryRun{Result: policies.DryRunAccepted}
	}}
	handler := serveWithDryRuns(targets, time.Minute, target("eu-1", nil))

	admissionRequest := testRequest{path: NativePath, object: web(1)}.request(t)
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  admissionRequest,
	})
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, NativePath, strings.NewReader(string(body)))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-"+traceID+"-"+serverSpan+"-01")
	recorded := httptest.NewRecorder()
	handler.ServeHTTP(recorded, req)
	if recorded.Code != http.StatusOK {
		t.Fatalf("status %d: %s", recorded.Code, recorded.Body)
	}
	if err := provider.Shutdown(t.Context()); err != nil { // exports the last spans
		t.Fatal(err)
	}
	checkTrace(t, c.received, traceID, serverSpan, traceparent)
}

// checkTrace checks that the admission, the dry run and the request to the target are
// spans of one trace, each a child of the one before.
func checkTrace(t *testing.T, received chan *tracev1.Span, traceID, serverSpan, traceparent string) {
	t.Helper()
	spans := map[string]*tracev1.Span{}
	close(received)
	for span := range received {
		spans[span.Name] = span
	}
	parent := serverSpan
	for _, name := range []string{"POST " + NativePath, "DryRun", "HTTP PATCH"} {
		span := spans[name]
		if span == nil {
			t.Fatalf("no span %q among %v", name, slices.Collect(maps.Keys(spans)))
		}
		if got := hex.EncodeToString(span.TraceId); got != traceID {
			t.Errorf("span %q is of trace %s, want the API server's, %s", name, got, traceID)
		}
		if got := hex.EncodeToString(span.ParentSpanId); got != parent {
			t.Errorf("span %q has parent %s, want %s", name, got, parent)
		}
		parent = hex.EncodeToString(span.SpanId)
	}
	if want := "00-" + traceID + "-" + parent + "-01"; traceparent != want {
		t.Errorf("the target got the trace context %q, want %q", traceparent, want)
	}
}
