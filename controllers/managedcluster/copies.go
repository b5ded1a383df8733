package managedcluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies/connectionsecret"
)

// secretCopy is a Secret that is, or may be, a copy of a connection.
type secretCopy struct {
	key types.NamespacedName
	// existing is the Secret with that key; nil if there is none.
	existing *corev1.Secret
	owner    connectionsecret.Owner
	// desired returns the desired Secret, and tells whether it differs from an existing
	// one.
	desired func(*v1alpha1.KubernetesTarget, *corev1.Secret, map[string][]byte) (*corev1.Secret, bool)
}

func keysOf(all ...secretCopy) []types.NamespacedName {
	var out []types.NamespacedName
	for _, c := range all {
		out = append(out, c.key)
	}
	return out
}

// readCopies reads the two Secrets with the names of a target's copies. An unwanted
// Secret is read from the hub only if the cache has its metadata.
func (c *Copier) readCopies(ctx context.Context, s *scope) error {
	s.shared = secretCopy{key: connectionsecret.CopyKey(s.target), desired: connectionsecret.DesiredCopy, owner: connectionsecret.OwnerNone}
	s.private = secretCopy{key: c.options.PrivateCopyKey(s.target), desired: c.options.DesiredPrivateCopy, owner: connectionsecret.OwnerNone}
	isPrivate := c.options.IsPrivate(s.target)
	var err error
	if s.shared.existing, err = c.getCopy(ctx, s.shared.key, s.target.Spec.ClusterRef != nil && !isPrivate); err != nil {
		return err
	}
	if s.private.existing, err = c.getCopy(ctx, s.private.key, s.target.Spec.ClusterRef != nil && isPrivate); err != nil {
		return err
	}
	if s.shared.existing != nil {
		s.shared.owner = connectionsecret.OwnerOf(s.target, s.shared.existing)
	}
	if s.private.existing != nil {
		s.private.owner = c.options.PrivateOwnerOf(s.target, s.private.existing)
	}
	return nil
}

func (c *Copier) getCopy(ctx context.Context, key types.NamespacedName, wanted bool) (*corev1.Secret, error) {
	if !wanted {
		cached := &metav1.PartialObjectMetadata{}
		cached.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if found, err := reconciler.Find(ctx, c.hub, key, cached); err != nil || !found {
			return nil, err
		}
	}
	return c.getSecret(ctx, key)
}

// getSecret reads a Secret from the hub; nil if there is none.
func (c *Copier) getSecret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	found, err := reconciler.Find(ctx, c.live, key, secret)
	if err != nil || !found {
		return nil, err
	}
	return secret, nil
}

// deleteCopy deletes an unwanted copy, if the target owns it.
func (c *Copier) deleteCopy(ctx context.Context, unwanted secretCopy) error {
	if unwanted.owner != connectionsecret.OwnerTarget {
		return nil
	}
	return c.writer.Delete(ctx, unwanted.existing, deleting)
}

// deleting is the reason of deletions.
const deleting = "deleting an unwanted copy of a connection,"

// deleteFormerPrivateCopies deletes the private copies of deleted targets with the same
// name.
func (c *Copier) deleteFormerPrivateCopies(ctx context.Context, s *scope) error {
	return c.deletePrivateCopiesExcept(ctx, s.key, c.options.PrivateCopyKey(s.target).Name)
}

func (c *Copier) deletePrivateCopiesExcept(ctx context.Context, target types.NamespacedName, except string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.hub.List(ctx, list, client.InNamespace(c.options.Namespace), client.MatchingFields{PrivateCopyIndex: target.String()}); err != nil {
		return fmt.Errorf("listing the private copies of target %s: %w", target, err)
	}
	var errs []error
	for i := range list.Items {
		if list.Items[i].Name != except {
			errs = append(errs, c.writer.Delete(ctx, &list.Items[i], deleting))
		}
	}
	return errors.Join(errs...)
}

// PrivateCopyIndex finds private copies by the namespace and name of their target.
const PrivateCopyIndex = "connectionOf"

// IndexPrivateCopy returns the function of PrivateCopyIndex.
func IndexPrivateCopy(o connectionsecret.Options) client.IndexerFunc {
	return func(secret client.Object) []string {
		if target := o.TargetOfPrivateCopy(secret); target.Name != "" {
			return []string{target.String()}
		}
		return nil
	}
}
