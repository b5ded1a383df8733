package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/test/cluster"
	"github.com/portico-io/portico/test/cluster/install"
)

// noop registers a webhook that allows everything unread, which is the minimal cost of
// an admission webhook. It takes the place of Portico: it is registered by Portico's
// own manifests, and served by the same library, in another process.
func noop(ctx context.Context, on *cluster.Cluster, manifests []*unstructured.Unstructured) (stop func(), err error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(on.Dir(), noopCertificate), certificate, 0o600),
		os.WriteFile(filepath.Join(on.Dir(), noopKey), key, 0o600),
	); err != nil {
		return nil, err
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	process, err := cluster.Launch(cluster.Command{Name: "noop", Path: self, Args: []string{"-noop", address}, Dir: on.Dir()})
	if err != nil {
		return nil, err
	}
	stop = func() { _ = process.Kill() }
	err = cluster.Poll(ctx, time.Minute, "the no-op webhook", func(context.Context) error {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
	if err != nil {
		return stop, err
	}
	return stop, register(ctx, on, manifests, address, certificate)
}

// The no-op webhook's certificate is in its working directory.
const (
	noopCertificate = "noop.crt"
	noopKey         = "noop.key"
)

// serveNoop runs the process of the no-op webhook.
func serveNoop(address string) error {
	server := &http.Server{
		Addr:              address,
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12},
		Handler: &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
			return admission.Allowed("")
		})},
	}
	return server.ListenAndServeTLS(noopCertificate, noopKey)
}

// register makes the hub call the webhook in place of Portico.
func register(ctx context.Context, on *cluster.Cluster, manifests []*unstructured.Unstructured, address string, certificate []byte) error {
	hub, err := client.New(on.Config(), client.Options{})
	if err != nil {
		return err
	}
	local, err := install.Localize(manifests, "https://"+address)
	if err != nil {
		return err
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
					return err
				}
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"); err != nil {
			return err
		}
		hooks = append(hooks, object)
	}
	if len(hooks) == 0 {
		return fmt.Errorf("the manifests have no webhooks")
	}
	return install.Apply(ctx, hub, hooks)
}
