package serving

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"

	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// embedded is the embedded mode, in which Portico is its own CA. cert-manager's dynamic
// source signs a serving certificate, whose key remains in this process. All replicas
// share the CA in a Secret. cert-manager's injector writes the CA into the webhook
// configurations.
type embedded struct {
	*servertls.DynamicSource
	injector manager.Manager
}

func newEmbedded(cfg *rest.Config, o Options) (Source, error) {
	// The injector has its own manager, whose cache is restricted to Portico's
	// namespace. The cache of Portico's manager is not.
	injector, err := manager.New(cfg, manager.Options{
		Scheme:                 scheme,
		Cache:                  o.cacheOptions(o.CASecret),
		Client:                 client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("building the CA injector's manager: %w", err)
	}
	if err := cainjector.RegisterAllInjectors(context.Background(), injector, cainjector.SetupOptions{
		Namespace: o.Namespace,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	}); err != nil {
		return nil, fmt.Errorf("registering the CA injectors: %w", err)
	}

	dns, ips := splitNames(o.Names)
	source := &embedded{
		injector: injector,
		DynamicSource: &servertls.DynamicSource{
			DNSNames: dns,
			Authority: addressSigner{ips: ips, DynamicAuthority: &authority.DynamicAuthority{
				SecretNamespace: o.Namespace,
				SecretName:      o.CASecret,
				CommonName:      o.CASecret,
				RESTConfig:      cfg,
				CADuration:      o.CADuration,
				LeafDuration:    o.LeafDuration,
			}},
		},
	}
	return newGate(source, configurations{reader: injector.GetCache(), name: o.Configuration, definition: o.Definition}, gateOptions{
		names:        o.Names,
		requireTrust: true,
		trustDelay:   min(defaultTrustDelay, o.LeafDuration/10),
	}), nil
}

// Start runs the CA, the certificate source and the injectors until ctx ends.
func (e *embedded) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.injector.Start(ctx) })
	group.Go(func() error { return e.DynamicSource.Start(ctx) })
	return group.Wait()
}

// addressSigner adds IP addresses to the signed certificates. cert-manager's source
// only supports DNS names, and clients of https://127.0.0.1 verify the address.
type addressSigner struct {
	*authority.DynamicAuthority
	ips []net.IP
}

// Sign signs the template with the addresses.
func (s addressSigner) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	template.IPAddresses = s.ips
	return s.DynamicAuthority.Sign(template)
}
