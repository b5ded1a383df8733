package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// noop is a webhook that lets everything pass unread: what any admission
// webhook costs at the least. It stands in Portico's place, registered by
// Portico's own manifests, and is served by the same library.
func noop(ctx context.Context, on *cluster.Cluster, manifests []*unstructured.Unstructured) (stop func(), err error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Handler: &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
			return admission.Allowed("")
		})},
	}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	stop = func() { _ = server.Close() }
	defer func() {
		if err != nil {
			stop()
		}
	}()

	hub, err := client.New(on.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	local, err := install.Localize(manifests, "https://"+listener.Addr().String())
	if err != nil {
		return nil, err
	}
	var hooks []*unstructured.Unstructured
	for _, object := range local {
		webhooks, found, _ := unstructured.NestedSlice(object.Object, "webhooks")
		if !found {
			continue
		}
		for _, item := range webhooks {
			if webhook, ok := item.(map[string]any); ok {
				if err := unstructured.SetNestedField(webhook, base64.StdEncoding.EncodeToString(certificate), "clientConfig", "caBundle"); err != nil {
					return nil, err
				}
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"); err != nil {
			return nil, err
		}
		hooks = append(hooks, object)
	}
	if len(hooks) == 0 {
		return nil, fmt.Errorf("the manifests have no webhooks")
	}
	return stop, install.Apply(ctx, hub, hooks)
}
