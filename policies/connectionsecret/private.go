package connectionsecret

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// Options are the options of the copies of managed clusters' connections.
type Options struct {
	// Namespace is Portico's own namespace, which contains the private copies.
	Namespace string
	// Connection applies to targets without spec.connection. Default: Copy.
	Connection v1alpha1.ConnectionPolicy
}

// IsPrivate tells whether the copy of a target is kept in Portico's namespace.
func (o Options) IsPrivate(target *v1alpha1.KubernetesTarget) bool {
	return cmp.Or(target.Spec.Connection, o.Connection, v1alpha1.ConnectionCopy) == v1alpha1.ConnectionPrivate
}

// PrivateCopyKey returns the key of a target's private copy. An owner reference
// cannot name an owner in another namespace, so the name depends on the UID of the
// target, which tells it from an earlier target of the same name.
func (o Options) PrivateCopyKey(target *v1alpha1.KubernetesTarget) types.NamespacedName {
	sum := sha256.Sum256([]byte(strings.Join([]string{target.Namespace, target.Name, string(target.UID)}, "/")))
	return types.NamespacedName{Namespace: o.Namespace, Name: "connection-" + hex.EncodeToString(sum[:16])}
}

// ConnectionSecret returns the key of a target's connection Secret: the one that the
// target names, else its private copy; zero if there is neither.
func (o Options) ConnectionSecret(target *v1alpha1.KubernetesTarget) types.NamespacedName {
	if target.Spec.ConnectionSecretRef == nil && target.Spec.ClusterRef != nil && o.IsPrivate(target) {
		return o.PrivateCopyKey(target)
	}
	return policies.ConnectionSecret(target)
}

// TargetOfPrivateCopy returns the namespace and name of the target of a private copy;
// zero if the Secret is not a private copy.
func (o Options) TargetOfPrivateCopy(secret metav1.Object) types.NamespacedName {
	if secret.GetNamespace() != o.Namespace || secret.GetLabels()[v1alpha1.ConnectionLabel] != v1alpha1.ConnectionLabelPrivate {
		return types.NamespacedName{}
	}
	namespace, name, _ := strings.Cut(secret.GetAnnotations()[v1alpha1.ConnectionOfAnnotation], "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// PrivateOwnerOf returns the owner of the Secret with the name of a private copy.
func (o Options) PrivateOwnerOf(target *v1alpha1.KubernetesTarget, existing metav1.Object) Owner {
	switch {
	case existing == nil:
		return OwnerNone
	case o.TargetOfPrivateCopy(existing) == types.NamespacedName{Namespace: target.Namespace, Name: target.Name}:
		return OwnerTarget
	}
	return OwnerOther
}

// DesiredPrivateCopy is DesiredCopy for the private copy.
func (o Options) DesiredPrivateCopy(target *v1alpha1.KubernetesTarget, existing *corev1.Secret, data map[string][]byte) (*corev1.Secret, bool) {
	return copyTo(o.PrivateCopyKey(target), target, existing, data, func(out *corev1.Secret) {
		out.Labels = map[string]string{v1alpha1.ConnectionLabel: v1alpha1.ConnectionLabelPrivate}
		out.Annotations = map[string]string{v1alpha1.ConnectionOfAnnotation: target.Namespace + "/" + target.Name}
	})
}
