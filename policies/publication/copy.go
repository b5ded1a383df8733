package publication

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
)

const copySuffix = "-connection"

// CopyKey is where the connection of a target's managed cluster is copied to.
func CopyKey(target *v1alpha1.KubernetesTarget) types.NamespacedName {
	name := target.Name + copySuffix
	if len(name) > validation.DNS1123SubdomainMaxLength {
		sum := sha256.Sum256([]byte(target.Name))
		digest := "-" + hex.EncodeToString(sum[:5])
		name = target.Name[:validation.DNS1123SubdomainMaxLength-len(digest)-len(copySuffix)] + digest + copySuffix
	}
	return types.NamespacedName{Namespace: target.Namespace, Name: name}
}

// Holder is whose the Secret is that has the copy's name.
type Holder string

// The holders of a copy's name.
const (
	// Nobody: there is no such Secret.
	Nobody Holder = "Nobody"
	// Ours: the target controls it.
	Ours Holder = "Ours"
	// Predecessor: it was that of a target of the same name that is gone, and
	// will be garbage-collected.
	Predecessor Holder = "Predecessor"
	// Others: it is never touched.
	Others Holder = "Others"
)

// HolderOf tells whose the Secret is that has the copy's name; existing is nil
// when there is none.
func HolderOf(target *v1alpha1.KubernetesTarget, existing metav1.Object) Holder {
	if existing == nil {
		return Nobody
	}
	if metav1.IsControlledBy(existing, target) {
		return Ours
	}
	owner := metav1.GetControllerOf(existing)
	_, copied := existing.GetAnnotations()[v1alpha1.CopiedFromAnnotation]
	if copied && owner != nil && owner.Kind == "KubernetesTarget" && owner.Name == target.Name {
		return Predecessor
	}
	return Others
}

// Wanted tells whether a target asks for a copy. A connectionSecretRef that the
// user gave wins; one that names the copy was set by Portico, unless the Secret
// of that name is somebody else's.
func Wanted(target *v1alpha1.KubernetesTarget, holder Holder) bool {
	if target.Spec.ClusterRef == nil || target.DeletionTimestamp != nil {
		return false
	}
	given := target.Spec.ConnectionSecretRef
	return given == nil || given.Name == CopyKey(target).Name && holder != Others
}

// IsCopied tells whether a target is reached, or will be, by what Portico copied.
func IsCopied(target *v1alpha1.KubernetesTarget) bool {
	given := target.Spec.ConnectionSecretRef
	return target.Spec.ClusterRef != nil && (given == nil || given.Name == CopyKey(target).Name)
}

// IsOf tells whether a copy is of the managed cluster that a target names now.
func IsOf(target *v1alpha1.KubernetesTarget, existing metav1.Object) bool {
	return target.Spec.ClusterRef != nil && existing.GetAnnotations()[v1alpha1.CopiedFromAnnotation] == identity(*target.Spec.ClusterRef)
}

// Copy writes the connection of a target's managed cluster over a Secret, which
// is nil or the target's own, and tells whether that changed it. What else is in
// its data goes: only the managed cluster says how it is reached.
func Copy(target *v1alpha1.KubernetesTarget, existing *corev1.Secret, data map[string][]byte) (*corev1.Secret, bool) {
	key := CopyKey(target)
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if existing != nil {
		out = existing.DeepCopy()
	} else {
		yes := true
		// Without blockOwnerDeletion, which would need rights of its own: a copy
		// that goes a moment after its target does no harm.
		out.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "KubernetesTarget",
			Name: target.Name, UID: target.UID, Controller: &yes,
		}}
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[v1alpha1.CopiedFromAnnotation] = identity(*target.Spec.ClusterRef)
	out.Data = maps.Clone(data)
	return out, existing == nil || !equality.Semantic.DeepEqual(existing, out)
}
