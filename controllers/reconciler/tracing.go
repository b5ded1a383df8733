package reconciler

import (
	"context"
	"path"
	"reflect"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// startSpan starts the span of a reconcile. Its requests to clusters are its children.
func startSpan(ctx context.Context, scope any) (context.Context, trace.Span) {
	return otel.Tracer("github.com/portico-io/portico/controllers/reconciler").Start(ctx, "Reconcile", trace.WithAttributes(
		attribute.String("controller", controllerOf(scope)),
		attribute.String("reconcileID", string(controller.ReconcileIDFromContext(ctx))),
	))
}

// controllerOf returns the name of the package that declares the type of a scope.
func controllerOf(scope any) string {
	t := reflect.TypeOf(scope)
	if t == nil {
		return ""
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return path.Base(t.PkgPath())
}
