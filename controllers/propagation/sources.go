package propagation

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/controllers/propagation/memory"
	"github.com/portico-io/portico/controllers/propagation/plan"
	"github.com/portico-io/portico/controllers/propagation/scope"
	"github.com/portico-io/portico/controllers/reconciler"
	"github.com/portico-io/portico/policies"
)

// The caches hold only the metadata of the hub's Secrets and ConfigMaps. Their content
// is read from the API server when it is to be sent.
//
// A Secret or ConfigMap that is labelled for remote scheduling has a resource of its own,
// and keeps its name on the target. The template of that resource does not have the
// content. The content is read for no other resource than the one that the Secret or
// ConfigMap controls.
//

// sources has the steps that read Secrets and ConfigMaps on the hub.
type sources struct{ *base }

// resolveContent finds the state of the Secret or ConfigMap that a resource is for.
func (c *sources) resolveContent(ctx context.Context, s *scope.Scope) error {
	owner := policies.ContentOwner(s.Resource)
	if owner == nil {
		return nil
	}
	key := memory.SourceKey{Kind: owner.Kind, Namespace: s.Resource.Namespace, Name: owner.Name}
	source := plan.MetadataOf(corev1.SchemeGroupVersion.WithKind(key.Kind))
	err := c.hub.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, source)
	if apierrors.IsNotFound(err) {
		return s.WithholdContent(policies.ContentDeniedReason(s.Resource, nil))
	}
	if err != nil {
		return fmt.Errorf("looking for %s %s: %w", key.Kind, key.Name, err)
	}
	if denied := policies.ContentDeniedReason(s.Resource, source); denied != "" {
		return s.WithholdContent(denied)
	}
	d := &plan.Dependency{Dependency: v1alpha1.Dependency{Kind: key.Kind, Name: key.Name}}
	if last := c.memory.Sources.Get(key); last.UID == source.UID && last.ResourceVersion == source.ResourceVersion {
		d.Found, d.Digest, d.Withheld = true, last.Digest, last.Withheld
	} else if err := c.readContent(ctx, s, d); err != nil {
		return err
	}
	if err := c.withholdConnectionSecret(ctx, key.Namespace, d); err != nil {
		return err
	}
	if d.Withheld != "" {
		s.SetFailed(v1alpha1.ReasonNeverSent, fmt.Sprintf("%s %s %s", d.Kind, d.Name, d.Withheld))
		return reconciler.ErrDone
	}
	s.Content = d
	return nil
}

// readContent reads the content. It checks again that the resource may have it, with
// the read object instead of the cached one.
func (c *sources) readContent(ctx context.Context, s *scope.Scope, d *plan.Dependency) error {
	if err := c.read(ctx, memory.SourceKey{Kind: d.Kind, Namespace: s.Resource.Namespace, Name: d.Name}, d); err != nil {
		return err
	}
	if denied := policies.ContentDeniedReason(s.Resource, d.Source); denied != "" {
		d.Content = nil
		return s.WithholdContent(denied)
	}
	return nil
}

// recordContentRevision records the applied revision in the status.
func (c *sources) recordContentRevision(_ context.Context, s *scope.Scope) error {
	if s.Content != nil {
		s.Resource.Status.ContentRevision = s.Revision
	}
	return nil
}

// sourceOf returns an empty object of a kind, as the cache holds it. Of Secrets and
// ConfigMaps it holds the metadata.
func sourceOf(kind string) client.Object {
	switch kind {
	case kinds.ServiceAccountKind:
		return &corev1.ServiceAccount{}
	case kinds.RoleKind:
		return &rbacv1.Role{}
	case kinds.RoleBindingKind:
		return &rbacv1.RoleBinding{}
	}
	return plan.MetadataOf(corev1.SchemeGroupVersion.WithKind(kind))
}

// resolveDependencies finds the state of the objects that the object needs.
func (c *sources) resolveDependencies(ctx context.Context, s *scope.Scope) error {
	for _, dependency := range plan.DependenciesOf(s.Resource) {
		d := plan.NewDependency(s.Resource, dependency)
		key := memory.SourceKey{Kind: d.Kind, Namespace: s.Resource.Namespace, Name: d.Name}
		source := sourceOf(d.Kind)
		err := c.hub.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, source)
		last := c.memory.Sources.Get(key)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("looking for %s %s: %w", d.Kind, d.Name, err)
		case dependency.Shared || dependency.Native: // its own resource has the content
			d.Found = true
			if err := c.resolveRevision(ctx, s, &d); err != nil {
				return err
			}
		case last.UID == source.GetUID() && last.ResourceVersion == source.GetResourceVersion():
			d.Found, d.Digest, d.Withheld, d.HasKeyPair = true, last.Digest, last.Withheld, last.HasKeyPair
		default:
			if err := c.read(ctx, key, &d); err != nil {
				return err
			}
		}
		if err := c.withholdConnectionSecret(ctx, s.Resource.Namespace, &d); err != nil {
			return err
		}
		withholdFromIngress(s.Desired, &d)
		s.Dependencies = append(s.Dependencies, d)
	}
	if plan.SetEnvironmentDigest(s.Desired, s.Resource, s.Dependencies) {
		return plan.SetDigest(s.Desired)
	}
	return nil
}

// resolveRevision reads the revision of a dependency that has a resource of its own, if
// Pods are replaced after its changes. The revision is written after the apply, so that
// new Pods read the new content.
func (c *sources) resolveRevision(ctx context.Context, s *scope.Scope, d *plan.Dependency) error {
	if !plan.RollsPods(s.Resource, s.Desired) {
		return nil
	}
	resource := &v1alpha1.KubernetesApplicationResource{}
	key := c.senderKey(s, d.Dependency)
	if err := c.hub.Get(ctx, key, resource); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading resource %s: %w", key, err)
	}
	if revision := resource.Status.ContentRevision; revision > 0 {
		d.Digest = strconv.FormatInt(revision, 10)
	}
	return nil
}

// read reads the content of a Secret or ConfigMap.
func (c *sources) read(ctx context.Context, key memory.SourceKey, d *plan.Dependency) error {
	var object client.Object = &corev1.Secret{}
	if key.Kind == references.ConfigMapKind {
		object = &corev1.ConfigMap{}
	}
	err := c.live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, object)
	if apierrors.IsNotFound(err) {
		d.Found, d.Digest, d.Content, d.Source = false, "", nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", key.Kind, key.Name, err)
	}
	d.Source = &metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, UID: object.GetUID(), Labels: object.GetLabels()}
	content, withheld := plan.ContentOf(object)
	d.Found, d.Withheld, d.Digest = true, withheld, plan.ContentDigest(object.GetUID(), content)
	d.HasKeyPair = plan.HasKeyPair(content)
	if withheld == "" {
		d.Content = content
	}
	c.memory.Sources.Set(key, memory.SourceState{UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Digest: d.Digest, Withheld: withheld, HasKeyPair: d.HasKeyPair})
	return nil
}

// withholdFromIngress leaves out a Secret that is not for TLS from an Ingress, which works
// without it: a user who may write an Ingress cannot read other Secrets by it on one
// cluster.
func withholdFromIngress(desired *unstructured.Unstructured, d *plan.Dependency) {
	if desired.GroupVersionKind() == (kinds.Ingress{}).GroupVersionKind() && !d.Native && !d.HasKeyPair {
		d.Found, d.Content, d.Digest = false, nil, ""
	}
}

// withholdConnectionSecret withholds the Secrets that connect to targets.
func (c *sources) withholdConnectionSecret(ctx context.Context, namespace string, d *plan.Dependency) error {
	if d.Kind != references.SecretKind || !d.Found || d.Withheld != "" {
		return nil
	}
	var targets v1alpha1.KubernetesTargetList
	secret := types.NamespacedName{Namespace: namespace, Name: d.Name}
	if err := c.hub.List(ctx, &targets, client.MatchingFields{policies.ConnectionSecretIndex: secret.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing targets: %w", err)
	}
	if d.Withheld = policies.HubOnlyConnectionReason(secret, targets.Items); d.Withheld != "" {
		d.Content = nil
	}
	return nil
}
