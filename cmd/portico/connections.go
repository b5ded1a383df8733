package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

// rules are what connection Secrets are judged by.
func rules(o *Options, hub *rest.Config) credentials.Rules {
	out := credentials.Rules{AllowLocal: o.AllowLocalTargets}
	if strings.HasPrefix(hub.Host, "https://") {
		out.Hub = hub.Host
	}
	return out
}
