package webhooks

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-base/tracing"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// traced makes a span of each request. The span is a child of the API server's span, if
// the request has a traceparent header.
func traced(path string, next http.Handler) http.Handler {
	return tracing.WithTracing(next, otel.GetTracerProvider(), path)
}

// tracedDryRun makes a span of a dry run. The requests to the target are its children,
// because the clients of targets add their own spans.
func (o Options) tracedDryRun(ctx context.Context, target *v1alpha1.KubernetesTarget, resource *v1alpha1.KubernetesApplicationResource, templates []*unstructured.Unstructured) policies.DryRun {
	ctx, span := otel.Tracer("github.com/portico-io/portico/webhooks").Start(ctx, "DryRun", trace.WithAttributes(
		attribute.String("namespace", target.Namespace),
		attribute.String("target", target.Name),
		attribute.String("resource", resource.Name),
	))
	defer span.End()
	result := o.DryRunner.DryRun(ctx, target, resource, templates)
	span.SetAttributes(attribute.String("result", string(result.Result)))
	if result.Result == policies.DryRunUnanswered {
		span.SetStatus(codes.Error, result.Message)
	}
	return result
}
