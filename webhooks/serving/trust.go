package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errNoBundle means that a webhook has no caBundle yet.
var errNoBundle = errors.New("no CA has been injected")

// configurations reads the caBundles of the API servers' clients: those in the webhook
// configurations, and that in the CustomResourceDefinition with a conversion webhook.
type configurations struct {
	reader     client.Reader
	name       string
	definition string
}

// caller is a webhook with its caBundle.
type caller struct {
	webhook  string
	caBundle []byte
}

// callers lists the webhooks of the configurations. A configuration that does not exist
// has no webhooks.
func (c configurations) callers(ctx context.Context) ([]caller, error) {
	var out []caller
	add := func(webhook string, config admissionregistrationv1.WebhookClientConfig) {
		out = append(out, caller{webhook: webhook, caBundle: config.CABundle})
	}

	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	if err := c.get(ctx, c.name, &mutating); err != nil {
		return nil, err
	}
	for _, webhook := range mutating.Webhooks {
		add(webhook.Name, webhook.ClientConfig)
	}

	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := c.get(ctx, c.name, &validating); err != nil {
		return nil, err
	}
	for _, webhook := range validating.Webhooks {
		add(webhook.Name, webhook.ClientConfig)
	}

	var definition apiextensionsv1.CustomResourceDefinition
	if err := c.get(ctx, c.definition, &definition); err != nil {
		return nil, err
	}
	if conversion := definition.Spec.Conversion; conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil {
		out = append(out, caller{webhook: "of conversion", caBundle: conversion.Webhook.ClientConfig.CABundle})
	}
	return out, nil
}

func (c configurations) get(ctx context.Context, name string, into client.Object) error {
	if err := c.reader.Get(ctx, client.ObjectKey{Name: name}, into); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %T %s: %w", into, name, err)
	}
	return nil
}

// trusted returns nil if all callers trust the certificate now. Otherwise the error
// names the first caller that does not.
func trusted(certificate *tls.Certificate, names []string, callers []caller, now time.Time) error {
	if err := covers(certificate, names); err != nil {
		return err
	}
	results := map[string]error{} // by caBundle, because most callers have the same one
	for _, caller := range callers {
		bundle := string(caller.caBundle)
		if _, ok := results[bundle]; !ok {
			results[bundle] = verify(certificate, caller.caBundle, now)
		}
		if err := results[bundle]; err != nil {
			return fmt.Errorf("webhook %s does not trust our certificate: %w", caller.webhook, err)
		}
	}
	return nil
}

// covers returns nil if the certificate is valid for all names.
func covers(certificate *tls.Certificate, names []string) error {
	for _, name := range names {
		if err := certificate.Leaf.VerifyHostname(name); err != nil {
			return fmt.Errorf("checking the serving certificate's names: %w", err)
		}
	}
	return nil
}

func verify(certificate *tls.Certificate, bundle []byte, now time.Time) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return errNoBundle
	}
	intermediates := x509.NewCertPool()
	for _, der := range certificate.Certificate[1:] {
		if intermediate, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(intermediate)
		}
	}
	_, err := certificate.Leaf.Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		CurrentTime:   now,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}
