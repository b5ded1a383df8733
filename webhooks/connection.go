package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/credentials"
)

// Secrets reads a Secret as it is now: none is kept in memory.
type Secrets interface {
	Secret(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error)
}

// readTimeout bounds the one look at a Secret.
const readTimeout = 2 * time.Second

// connections judges connection Secrets, at the admission of the Secret or of
// the KubernetesTarget, whichever comes second.
type connections struct {
	reader   client.Reader // a cache
	secrets  Secrets
	rules    credentials.Rules
	identity string
}

// secret judges a Secret that a KubernetesTarget of its namespace names. What
// it says of it names keys, and never values.
func (c connections) secret(ctx context.Context, req admission.Request) (admission.Response, error) {
	if req.Kind.Kind != "Secret" || req.Kind.Group != "" || subresource(req) || req.UserInfo.Username == c.identity {
		return admission.Allowed(""), nil
	}
	now, err := decodeSecret(req.Object.Raw)
	if err != nil {
		return admission.Response{}, err
	}
	if now.DeletionTimestamp != nil {
		return admission.Allowed(""), nil
	}
	old := &corev1.Secret{}
	if len(req.OldObject.Raw) > 0 {
		if old, err = decodeSecret(req.OldObject.Raw); err != nil {
			return admission.Response{}, err
		}
	}
	if named, err := c.named(ctx, req); err != nil || !named {
		return admission.Allowed(""), err
	}
	if awaited(now) {
		return admission.Allowed(""), nil
	}
	read, errs := c.rules.Read(now.Data)
	if len(req.OldObject.Raw) > 0 {
		_, before := c.rules.Read(old.Data)
		errs = policies.Added(errs, before)
	}
	resp := verdict(req, errs)
	if resp.Allowed && read != nil {
		warnOfExpiry(&resp, req.Name, read.Expiry)
	}
	return resp, nil
}

// decodeSecret reads a Secret. The decoder's own words could quote it.
func decodeSecret(raw []byte) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if json.Unmarshal(raw, secret) != nil {
		return nil, errors.New("reading the connection")
	}
	return secret, nil
}

// named tells whether a target of the Secret's namespace names it.
func (c connections) named(ctx context.Context, req admission.Request) (bool, error) {
	targets := &v1alpha1.KubernetesTargetList{}
	if err := c.reader.List(ctx, targets, client.InNamespace(req.Namespace)); err != nil {
		return false, fmt.Errorf("listing targets: %w", err)
	}
	return slices.ContainsFunc(targets.Items, func(target v1alpha1.KubernetesTarget) bool {
		return target.Spec.ConnectionSecretRef != nil && target.Spec.ConnectionSecretRef.Name == req.Name
	}), nil
}

// target judges the Secret that a KubernetesTarget names from now on. One that
// is not there yet is judged when it comes, and so is one that cannot be read:
// the controller asks again.
func (c connections) target(ctx context.Context, req admission.Request, now, old *v1alpha1.KubernetesTarget, resp *admission.Response) field.ErrorList {
	ref := now.Spec.ConnectionSecretRef
	if ref == nil || req.UserInfo.Username == c.identity ||
		old != nil && old.Spec.ConnectionSecretRef != nil && old.Spec.ConnectionSecretRef.Name == ref.Name {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	secret, err := c.secrets.Secret(ctx, types.NamespacedName{Namespace: req.Namespace, Name: ref.Name})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		resp.Warnings = append(resp.Warnings, shorten(fmt.Sprintf("accepted unseen: secret %s could not be read; the target's status will tell", ref.Name)))
		return nil
	case awaited(secret):
		return nil
	}
	read, problems := c.rules.Read(secret.Data)
	path := field.NewPath("spec", "connectionSecretRef", "name")
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, ref.Name, "the secret does not connect: "+problem.Error()))
	}
	if read != nil {
		warnOfExpiry(resp, ref.Name, read.Expiry)
	}
	return errs
}

// awaited tells a Secret that Kubernetes puts a service account's token into, a
// moment after it was made. What comes then is judged then.
func awaited(secret *corev1.Secret) bool {
	return secret.Type == corev1.SecretTypeServiceAccountToken && len(secret.Data) == 0
}

func warnOfExpiry(resp *admission.Response, name string, expiry time.Time) {
	if !expiry.IsZero() && time.Now().After(expiry) {
		resp.Warnings = append(resp.Warnings,
			shorten(fmt.Sprintf("the credential in secret %s ended at %s; the target will not accept it", name, expiry.UTC().Format(time.RFC3339))))
	}
}
