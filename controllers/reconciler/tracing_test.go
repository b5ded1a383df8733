package reconciler

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

type tracedScope struct{}

// TestSpan: a reconcile is a span, and a step that fails marks it.
func TestSpan(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	previous := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	t.Cleanup(func() { otel.SetTracerProvider(previous) })

	for name, tc := range map[string]struct {
		err  error
		want codes.Code
	}{
		"Done":   {err: ErrDone, want: codes.Unset},
		"Failed": {err: errors.New("no"), want: codes.Error},
	} {
		t.Run(name, func(t *testing.T) {
			exporter.Reset()
			var inStep trace.SpanContext
			_, _ = Run(t.Context(), &tracedScope{}, []Step[*tracedScope]{{Name: "apply", Run: func(ctx context.Context, _ *tracedScope) error {
				inStep = trace.SpanContextFromContext(ctx)
				return tc.err
			}}}, nil)
			spans := exporter.GetSpans()
			if len(spans) != 1 || spans[0].Name != "Reconcile" {
				t.Fatalf("spans %v, want one of the reconcile", spans)
			}
			span := spans[0]
			if span.SpanContext.SpanID() != inStep.SpanID() || span.Status.Code != tc.want {
				t.Errorf("the step ran in span %s, and the span of the reconcile is %s with status %v, want %v", inStep.SpanID(), span.SpanContext.SpanID(), span.Status.Code, tc.want)
			}
			attributes := attribute.NewSet(span.Attributes...)
			if controller, _ := attributes.Value("controller"); controller.AsString() != "reconciler" {
				t.Errorf("controller %q, want the package of the scope", controller.AsString())
			}
		})
	}
}
