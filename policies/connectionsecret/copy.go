package connectionsecret

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

const copySuffix = "-connection"

// CopyKey returns the key of the Secret to which the connection of a target's managed
// cluster is copied.
func CopyKey(target *v1alpha1.KubernetesTarget) types.NamespacedName {
	name := target.Name + copySuffix
	if len(name) > validation.DNS1123SubdomainMaxLength {
		sum := sha256.Sum256([]byte(target.Name))
		digest := "-" + hex.EncodeToString(sum[:5])
		name = target.Name[:validation.DNS1123SubdomainMaxLength-len(digest)-len(copySuffix)] + digest + copySuffix
	}
	return types.NamespacedName{Namespace: target.Namespace, Name: name}
}

// Owner is the owner of the Secret with the name of a copy.
type Owner string

// The owners of a Secret with the name of a copy.
const (
	// OwnerNone: there is no such Secret.
	OwnerNone Owner = "Nobody"
	// OwnerTarget: the target controls the Secret.
	OwnerTarget Owner = "Ours"
	// OwnerFormerTarget: a deleted target of the same name controls the Secret, which
	// will be garbage-collected.
	OwnerFormerTarget Owner = "Predecessor"
	// OwnerOther: another object does, and Portico never changes the Secret.
	OwnerOther Owner = "Others"
)

// OwnerOf returns the owner of the Secret with the name of a copy; existing is nil if
// there is none.
func OwnerOf(target *v1alpha1.KubernetesTarget, existing metav1.Object) Owner {
	if existing == nil {
		return OwnerNone
	}
	if metav1.IsControlledBy(existing, target) {
		return OwnerTarget
	}
	owner := metav1.GetControllerOf(existing)
	_, copied := existing.GetAnnotations()[v1alpha1.CopiedFromAnnotation]
	if copied && owner != nil && owner.Kind == "KubernetesTarget" && owner.Name == target.Name {
		return OwnerFormerTarget
	}
	return OwnerOther
}

// IsCopyWanted tells whether a target asks for a copy. A connectionSecretRef of a
// user wins. A reference to the copy was set by Portico, unless another object owns
// the Secret of that name.
func IsCopyWanted(target *v1alpha1.KubernetesTarget, owner Owner) bool {
	if target.Spec.ClusterRef == nil || target.DeletionTimestamp != nil {
		return false
	}
	return target.Spec.ConnectionSecretRef == nil || policies.ConnectionSecret(target) == CopyKey(target) && owner != OwnerOther
}

// IsCopied tells whether Portico copies the connection of a target.
func IsCopied(target *v1alpha1.KubernetesTarget) bool {
	return target.Spec.ClusterRef != nil && (target.Spec.ConnectionSecretRef == nil || policies.ConnectionSecret(target) == CopyKey(target))
}

// IsCopyOf tells whether a Secret is a copy for the managed cluster that a target
// names now.
func IsCopyOf(target *v1alpha1.KubernetesTarget, existing metav1.Object) bool {
	return target.Spec.ClusterRef != nil && existing.GetAnnotations()[v1alpha1.CopiedFromAnnotation] == clusterIdentity(*target.Spec.ClusterRef)
}

// DesiredCopy returns the copy of the connection of a target's managed cluster, and
// tells whether it differs from the existing one, which is nil or controlled by the
// target. Other keys of the existing one are removed.
func DesiredCopy(target *v1alpha1.KubernetesTarget, existing *corev1.Secret, data map[string][]byte) (*corev1.Secret, bool) {
	yes := true
	return copyTo(CopyKey(target), target, existing, data, func(out *corev1.Secret) {
		// Without blockOwnerDeletion, which would need another right: a copy may be
		// deleted a moment after its target.
		out.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "KubernetesTarget",
			Name: target.Name, UID: target.UID, Controller: &yes,
		}}
	})
}

func copyTo(key types.NamespacedName, target *v1alpha1.KubernetesTarget, existing *corev1.Secret, data map[string][]byte, own func(*corev1.Secret)) (*corev1.Secret, bool) {
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if existing != nil {
		out = existing.DeepCopy()
	} else {
		own(out)
	}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.CopiedFromAnnotation, clusterIdentity(*target.Spec.ClusterRef))
	out.Data = maps.Clone(data)
	return out, existing == nil || !equality.Semantic.DeepEqual(existing, out)
}
