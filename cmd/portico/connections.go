package main

import (
	"context"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/policies/credentials"
)

// secrets reads Secrets for the webhooks, from the hub itself.
type secrets struct{ client.Reader }

// Secret implements webhooks.Secrets.
func (s secrets) Secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := s.Get(ctx, key, secret); err != nil {
		return nil, err
	}
	return secret, nil
}

// rules returns the rules for connection Secrets. hubAddresses are the addresses of
// Service kubernetes.
func rules(o *Options, hub *rest.Config, hubAddresses []string) credentials.Rules {
	out := credentials.Rules{AllowLocal: o.AllowLocalTargets, HubHosts: hubAddresses}
	if strings.HasPrefix(hub.Host, "https://") {
		out.Hub = hub.Host
	}
	if u, err := url.Parse(hub.Host); err == nil && u.Hostname() != "" {
		out.HubHosts = append(out.HubHosts, u.Hostname())
	}
	return out
}

// hubAddresses returns the addresses of Service kubernetes. Pods reach the hub's API
// server at these addresses.
//
// +kubebuilder:rbac:groups="",resources=services,verbs=get
func hubAddresses(ctx context.Context, hub kubernetes.Interface) ([]string, error) {
	service, err := hub.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return slices.Clone(service.Spec.ClusterIPs), nil
}
