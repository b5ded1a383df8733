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

// embedded is Portico as its own authority: cert-manager's dynamic source signs
// a leaf that never leaves this process, with a CA that all replicas share in a
// Secret, and cert-manager's injector puts that CA into our configurations.
type embedded struct {
	*servertls.DynamicSource
	injector manager.Manager
}

func newEmbedded(cfg *rest.Config, o Options) (Source, error) {
	// The injector has a manager of its own: its cache reaches no further than
	// our namespace, while Portico's sees the cluster.
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

// Start runs the authority, the leaf and the injectors until ctx ends.
func (e *embedded) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.injector.Start(ctx) })
	group.Go(func() error { return e.DynamicSource.Start(ctx) })
	return group.Wait()
}

// addressSigner adds IP addresses to what the authority signs: cert-manager's
// source knows DNS names only, and https://127.0.0.1 is verified by address.
type addressSigner struct {
	*authority.DynamicAuthority
	ips []net.IP
}

// Sign signs the template for our addresses as well.
func (s addressSigner) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	template.IPAddresses = s.ips
	return s.DynamicAuthority.Sign(template)
}
