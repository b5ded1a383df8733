package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
)

// Secrets reads Secrets from the API server, because no cache keeps them.
type Secrets interface {
	Secret(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error)
}

// readTimeout is the limit on reading a Secret.
const readTimeout = 2 * time.Second

// connections validates connection Secrets, when the Secret or the KubernetesTarget is
// admitted, whichever is later.
type connections struct {
	reader   client.Reader // a cache
	secrets  Secrets
	rules    credentials.Rules
	identity string
}

// validateSecret validates a Secret that a KubernetesTarget names. Its errors contain
// keys of the Secret and no values.
func (c connections) validateSecret(ctx context.Context, req admission.Request) (admission.Response, error) {
	if req.Kind.Kind != "Secret" || req.Kind.Group != "" || subresource(req) || req.UserInfo.Username == c.identity {
		return admission.Allowed(""), nil
	}
	now, err := decodeSecret(req.Object.Raw)
	if err != nil {
		return admission.Response{}, err
	}
	old := &corev1.Secret{}
	if len(req.OldObject.Raw) > 0 {
		if old, err = decodeSecret(req.OldObject.Raw); err != nil {
			return admission.Response{}, err
		}
	}
	if named, err := c.isNamedByTarget(ctx, req); err != nil || !named {
		return admission.Allowed(""), err
	}
	if isEmptyTokenSecret(now) {
		return admission.Allowed(""), nil
	}
	connection, errs := c.rules.ReadSecret(now.Data)
	if len(req.OldObject.Raw) > 0 {
		_, oldErrs := c.rules.ReadSecret(old.Data)
		errs = policies.RatchetErrors(errs, oldErrs)
	}
	resp := validationResponse(req, errs)
	if resp.Allowed && connection != nil {
		resp = resp.WithWarnings(expiryWarnings(req.Name, connection.Expiry)...)
	}
	return resp, nil
}

// decodeSecret decodes a Secret. It drops the decoder's error, which may quote values.
func decodeSecret(raw []byte) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if json.Unmarshal(raw, secret) != nil {
		return nil, errors.New("reading the connection")
	}
	return secret, nil
}

// isNamedByTarget tells whether a target of any namespace names the Secret.
func (c connections) isNamedByTarget(ctx context.Context, req admission.Request) (bool, error) {
	targets := &v1alpha1.KubernetesTargetList{}
	secret := types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
	if err := c.reader.List(ctx, targets, client.MatchingFields{policies.ConnectionSecretIndex: secret.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing targets: %w", err)
	}
	return len(targets.Items) > 0, nil
}

// isEmptyTokenSecret tells whether Kubernetes will write a service account's token into
// a Secret. The update with the token is validated.
func isEmptyTokenSecret(secret *corev1.Secret) bool {
	return secret.Type == corev1.SecretTypeServiceAccountToken && len(secret.Data) == 0
}

// expiryWarnings warns about a credential that has expired.
func expiryWarnings(secret string, expiry time.Time) []string {
	if expiry.IsZero() || time.Now().Before(expiry) {
		return nil
	}
	return []string{shorten(fmt.Sprintf("the credential in secret %s expired at %s; the target will not accept it", secret, expiry.UTC().Format(time.RFC3339)))}
}
