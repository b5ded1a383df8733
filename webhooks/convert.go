package webhooks

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	convert "github.com/portico-io/portico/api/workload/conversion"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// ConvertPath is where the hub has KubernetesApplications converted, as their
// CustomResourceDefinition says.
const ConvertPath = "/convert"

// converter converts between the versions of Portico's kinds.
func converter(scheme *runtime.Scheme) (http.Handler, error) {
	up := func(_ context.Context, from *v1alpha1.KubernetesApplication, to *v1alpha2.KubernetesApplication) error {
		convert.Up(from, to)
		return nil
	}
	down := func(_ context.Context, from *v1alpha2.KubernetesApplication, to *v1alpha1.KubernetesApplication) error {
		convert.Down(from, to)
		return nil
	}
	made, err := conversion.NewHubSpokeConverter(&v1alpha2.KubernetesApplication{},
		conversion.NewSpokeConverter(&v1alpha1.KubernetesApplication{}, down, up))(scheme)
	if err != nil {
		return nil, fmt.Errorf("preparing the conversion of KubernetesApplications: %w", err)
	}
	registry := conversion.NewRegistry()
	if err := registry.RegisterConverter(v1alpha2.GroupVersion.WithKind("KubernetesApplication").GroupKind(), made); err != nil {
		return nil, fmt.Errorf("adding the conversion of KubernetesApplications: %w", err)
	}
	return conversion.NewWebhookHandler(scheme, registry), nil
}
