// Package serving provides the certificate that Portico's webhook server
// presents to the API server, and changes it without a failed request.
//
// It is the one package that imports cert-manager's machinery. cert-manager
// promises nothing for Go packages outside pkg/apis, so everything it gives us
// stays behind Source, and the tests run it against a real API server.
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
	// DefaultCASecret holds the authority of the embedded mode.
	DefaultCASecret = "portico-ca"

	// DefaultConfiguration is the name of both of Portico's webhook configurations.
	DefaultConfiguration = "portico"

	// DefaultDefinition is the CustomResourceDefinition whose versions we convert.
	DefaultDefinition = "kubernetesapplications.workload.crossplane.io"

	// FieldManager owns the caBundle fields that the embedded mode writes.
	FieldManager = "portico-certificates"

	defaultCADuration   = 365 * 24 * time.Hour
	defaultLeafDuration = 7 * 24 * time.Hour
)

// Source is where the webhook server gets its certificate. It runs on every
// replica: a webhook that waits for leadership is a webhook that is down.
type Source interface {
	servertls.CertificateSource
	manager.LeaderElectionRunnable

	// Ready is a health checker: it returns an error until a certificate is
	// there, is valid, and, in the embedded mode, is trusted by everyone who
	// may call.
	Ready(*http.Request) error
}

// Options say which certificate to serve.
type Options struct {
	// Namespace Portico runs in. Every Secret read here lives in it.
	Namespace string

	// CertificateSecret names a Secret of type kubernetes.io/tls that somebody
	// else, usually cert-manager, keeps current. Empty means that Portico is
	// its own authority: the embedded mode.
	CertificateSecret string

	// CASecret holds the embedded authority. Defaults to DefaultCASecret.
	CASecret string

	// Names that we are called by, DNS names and IP addresses alike: a
	// Service's, or the host of the URL in a webhook configuration. The
	// embedded certificate is signed for them; any other is checked for them.
	Names []string

	// Configuration is the name of the mutating and of the validating webhook
	// configuration that call us. Defaults to DefaultConfiguration.
	Configuration string

	// Definition is the name of the CustomResourceDefinition that has us convert.
	// Defaults to DefaultDefinition.
	Definition string

	// CADuration and LeafDuration are how long the embedded authority and its
	// certificates live. Both are renewed after two thirds of that. They
	// default to a year and a week.
	CADuration, LeafDuration time.Duration
}

// ServiceName is the name that an API server calls a Service by.
func ServiceName(service, namespace string) string {
	return service + "." + namespace + ".svc"
}

// New returns the certificate source that the options ask for. It talks to the
// API server once started, and to find out how to address what it watches.
func New(cfg *rest.Config, o Options) (Source, error) {
	o.setDefaults()
	if o.Namespace == "" {
		return nil, errors.New("a namespace is required to serve a certificate")
	}
	cfg = rest.CopyConfig(cfg)
	// cert-manager's injector derives its field manager from the user agent and
	// is refused by the API server without one.
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

// cacheOptions confine what we watch to the few objects we need, so that
// permissions can name them.
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

// scheme knows the kinds we watch.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	out := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(out); err != nil {
			panic(err) // two kinds of one name, in this binary
		}
	}
	return out
}

// splitNames tells IP addresses from DNS names; a certificate lists them apart.
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
