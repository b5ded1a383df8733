package webhooks

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	convert "github.com/portico-io/portico/api/workload/conversion"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// ConvertPath is the path of the conversion webhook in the CustomResourceDefinition
// of KubernetesApplications.
const ConvertPath = "/convert"

// maxConversionBytes is the limit on the body of a ConversionReview. An API server
// converts a whole list in one review. A client that reads pages of 500 objects, as
// kubectl does, stays below this limit if the objects have 128 KiB on average.
const maxConversionBytes = 64 << 20

// converter converts between the versions of KubernetesApplications. The objects are
// not typed, because types drop empty fields.
func converter() (http.Handler, error) {
	scheme, registry := runtime.NewScheme(), conversion.NewRegistry()
	stored := v1alpha2.GroupVersion.WithKind("KubernetesApplication")
	scheme.AddKnownTypeWithName(stored, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(v1alpha1.GroupVersion.WithKind(stored.Kind), &unstructured.Unstructured{})
	if err := registry.RegisterConverter(stored.GroupKind(), applicationConverter{}); err != nil {
		return nil, fmt.Errorf("adding the conversion of KubernetesApplications: %w", err)
	}
	return limitBody(conversion.NewWebhookHandler(scheme, registry), maxConversionBytes), nil
}

// limitBody rejects requests with a body above a limit.
func limitBody(next http.Handler, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > limit {
			http.Error(w, fmt.Sprintf("the request has more than %d bytes", limit), http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		next.ServeHTTP(w, r)
	})
}

// applicationConverter converts KubernetesApplications.
type applicationConverter struct{}

// ConvertObject implements conversion.Converter. The destination has its version
// and kind.
func (applicationConverter) ConvertObject(_ context.Context, source, destination runtime.Object) error {
	from, ok := source.(*unstructured.Unstructured)
	to, ok2 := destination.(*unstructured.Unstructured)
	if !ok || !ok2 {
		return fmt.Errorf("converting a %T to a %T is not supported", source, destination)
	}
	converted, err := convert.Convert(from, to.GetAPIVersion())
	if err != nil {
		return err
	}
	to.Object = converted.Object
	return nil
}
