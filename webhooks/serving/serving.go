// Package serving provides the serving certificate of Portico's webhook server, and
// rotates it without a failed request.
//
// It is the only package that imports cert-manager's internal packages, for which
// cert-manager gives no compatibility promise. Only the interface Source is visible to
// other packages. The tests run it with a real API server.
package serving

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// DefaultCASecret is the Secret with the CA of the embedded mode.
	DefaultCASecret = "portico-ca"

	// DefaultConfiguration is the name of both of Portico's webhook configurations.
	DefaultConfiguration = "portico"

	// DefaultDefinition is the CustomResourceDefinition with a conversion webhook.
	DefaultDefinition = "kubernetesapplications.workload.crossplane.io"

	// FieldManager owns the caBundle fields that the embedded mode writes.
	FieldManager = "portico-certificates"

	defaultCADuration   = 365 * 24 * time.Hour
	defaultLeafDuration = 7 * 24 * time.Hour
)

// Source is the source of the serving certificate. Every replica runs it, because every
// replica serves webhooks.
type Source interface {
	servertls.CertificateSource
	manager.LeaderElectionRunnable

	// Ready is a health checker. It returns an error until there is a valid certificate.
	// In the embedded mode, all webhook configurations must also trust it.
	Ready(*http.Request) error
}

// Options select the serving certificate.
type Options struct {
	// Namespace is Portico's own namespace, which contains every Secret that is read.
	Namespace string

	// CertificateSecret names a Secret of type kubernetes.io/tls that another component
	// renews, usually cert-manager. If it is empty, Portico is its own CA: the embedded
	// mode.
	CertificateSecret string

	// CASecret is the Secret with the CA of the embedded mode. Default: DefaultCASecret.
	CASecret string

	// Names are the DNS names and IP addresses of the webhook server: the name of its
	// Service, or the host of the URL in a webhook configuration. The embedded
	// certificate is signed for them. Another certificate is checked for them.
	Names []string

	// Configuration is the name of the MutatingWebhookConfiguration and of the
	// ValidatingWebhookConfiguration. Default: DefaultConfiguration.
	Configuration string

	// Definition is the name of the CustomResourceDefinition with the conversion
	// webhook. Default: DefaultDefinition.
	Definition string

	// CADuration and LeafDuration are the lifetimes of the embedded CA and of its
	// certificates. Both are renewed after two thirds of their lifetime. Default: a year
	// and a week.
	CADuration, LeafDuration time.Duration
}

// ServiceName returns the name by which API servers call a Service.
func ServiceName(service, namespace string) string {
	return service + "." + namespace + ".svc"
}

// New returns the certificate source for the options. It requests the API resources of
// the watched kinds from the API server. All other requests begin with Start.
func New(cfg *rest.Config, o Options) (Source, error) {
	o.setDefaults()
	if o.Namespace == "" {
		return nil, errors.New("a namespace is required to serve a certificate")
	}
	cfg = rest.CopyConfig(cfg)
	// cert-manager's injector takes its field manager from the user agent. The API
	// server refuses requests without a field manager.
	cfg.UserAgent = FieldManager

	if o.CertificateSecret != "" {
		return newFromSecret(cfg, o)
	}
	if len(o.Names) == 0 {
		return nil, errors.New("at least one name is required to sign a certificate for")
	}
	if o.LeafDuration >= o.CADuration {
		return nil, fmt.Errorf("a leaf that lives %s needs an authority that lives longer than %s", o.LeafDuration, o.CADuration)
	}
	return newEmbedded(cfg, o)
}

func (o *Options) setDefaults() {
	if o.CASecret == "" {
		o.CASecret = DefaultCASecret
	}
	if o.Configuration == "" {
		o.Configuration = DefaultConfiguration
	}
	if o.Definition == "" {
		o.Definition = DefaultDefinition
	}
	if o.CADuration == 0 {
		o.CADuration = defaultCADuration
	}
	if o.LeafDuration == 0 {
		o.LeafDuration = defaultLeafDuration
	}
}

// cacheOptions restricts the cache to the objects that are needed, so that the role can
// name them.
func (o Options) cacheOptions(secret string) cache.Options {
	configuration := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", o.Configuration)}
	return cache.Options{
		Scheme:            scheme,
		DefaultNamespaces: map[string]cache.Config{o.Namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Field: fields.OneTermEqualSelector("metadata.name", secret)},
			&admissionregistrationv1.MutatingWebhookConfiguration{}:   configuration,
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: configuration,
			&apiextensionsv1.CustomResourceDefinition{}:               {Field: fields.OneTermEqualSelector("metadata.name", o.Definition)},
		},
	}
}

// scheme contains the watched kinds.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	out := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(out); err != nil {
			panic(err) // this binary registers two types for one kind
		}
	}
	return out
}

// splitNames separates IP addresses from DNS names, as a certificate does.
func splitNames(names []string) (dns []string, ips []net.IP) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
			continue
		}
		dns = append(dns, name)
	}
	return dns, ips
}
