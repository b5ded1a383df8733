package serving

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// fromSecret presents the certificate in a Secret that another component writes. It
// watches the Secret, because a mounted volume is updated a minute or more later.
type fromSecret struct {
	cache   cache.Cache
	name    string
	current atomic.Pointer[tls.Certificate]
}

func newFromSecret(cfg *rest.Config, o Options) (Source, error) {
	watched, err := cache.New(cfg, o.cacheOptions(o.CertificateSecret))
	if err != nil {
		return nil, fmt.Errorf("building a cache for Secret %s: %w", o.CertificateSecret, err)
	}
	source := &fromSecret{cache: watched, name: o.CertificateSecret}
	return newGate(source, configurations{reader: watched, name: o.Configuration, definition: o.Definition}, gateOptions{names: o.Names, trustDelay: defaultTrustDelay}), nil
}

// Start watches the Secret until ctx ends.
func (s *fromSecret) Start(ctx context.Context) error {
	informer, err := s.cache.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching Secret %s: %w", s.name, err)
	}
	log := klog.FromContext(ctx)
	read := func(obj any) {
		if secret, ok := obj.(*corev1.Secret); ok {
			s.read(log, secret)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    read,
		UpdateFunc: func(_, obj any) { read(obj) },
		// The deletion of the Secret is ignored: the current certificate is valid until
		// it expires.
	}); err != nil {
		return fmt.Errorf("watching Secret %s: %w", s.name, err)
	}
	return s.cache.Start(ctx)
}

func (s *fromSecret) read(log klog.Logger, secret *corev1.Secret) {
	certificate, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		log.Error(err, "Ignored a Secret that holds no usable certificate", "secret", klog.KObj(secret))
		return
	}
	if current := s.current.Load(); current != nil && current.Leaf.Equal(certificate.Leaf) {
		return
	}
	s.current.Store(&certificate)
}

// GetCertificate returns the newest usable certificate of the Secret.
func (s *fromSecret) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := s.current.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, servertls.ErrNotAvailable
}

// Healthy reports whether there is a certificate.
func (s *fromSecret) Healthy() bool { return s.current.Load() != nil }
