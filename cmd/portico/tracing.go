package main

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// flushTimeout is the limit on exporting the last spans when the process ends.
const flushTimeout = 5 * time.Second

// setUpTracing exports spans to --tracing-endpoint. The returned function exports the
// last spans.
func setUpTracing(ctx context.Context, o *Options) (flush func(), err error) {
	if o.TracingEndpoint == "" {
		return func() {}, nil
	}
	provider, err := tracing.NewProvider(ctx, &tracingapi.TracingConfiguration{
		Endpoint: &o.TracingEndpoint, SamplingRatePerMillion: &o.TracingSamplingRatePerMillion,
	}, nil, []resource.Option{resource.WithAttributes(
		attribute.String("service.name", "portico"),
		attribute.String("service.version", versionString()),
	)})
	if err != nil {
		return nil, fmt.Errorf("setting up traces: %w", err)
	}
	otel.SetTracerProvider(provider)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			ctrl.Log.Error(err, "Could not export the last spans")
		}
	}, nil
}
