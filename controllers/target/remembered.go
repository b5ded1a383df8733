package target

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// rememberedSpecs keeps the connections of targets from before their deletion began.
// Admission validates a later change, but may have been unavailable, so a later change
// is not used.
//
// It is kept in memory only: a process that starts after the deletion began keeps the
// first spec that it reads.
type rememberedSpecs struct {
	mu sync.Mutex
	// specs are the targets before their deletion, by name.
	specs map[types.NamespacedName]*v1alpha1.KubernetesTarget
	// bySecret are the targets that are being deleted, by the Secret of their kept
	// connection. The index of targets may have another Secret for them.
	bySecret map[types.NamespacedName]types.NamespacedName
}

// withRememberedConnection returns the target. A target that is being deleted gets its
// earlier connection.
func (r *rememberedSpecs) withRememberedConnection(target *v1alpha1.KubernetesTarget) *v1alpha1.KubernetesTarget {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(target)
	kept := r.specs[key]
	if target.DeletionTimestamp == nil || kept == nil || kept.UID != target.UID {
		if r.specs == nil {
			r.specs, r.bySecret = map[types.NamespacedName]*v1alpha1.KubernetesTarget{}, map[types.NamespacedName]types.NamespacedName{}
		}
		r.specs[key] = target.DeepCopy()
		return target
	}
	out := target.DeepCopy()
	out.Spec.ConnectionSecretRef, out.Spec.Impersonate = kept.Spec.ConnectionSecretRef, kept.Spec.Impersonate
	out.Spec.ClusterRef, out.Spec.Connection = kept.Spec.ClusterRef, kept.Spec.Connection
	if secret := policies.ConnectionSecret(out); secret.Name != "" {
		r.bySecret[secret] = key
	}
	return out
}

// targetsOfSecret returns the targets with a kept connection of a Secret.
func (r *rememberedSpecs) targetsOfSecret(secret types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	if target, found := r.bySecret[secret]; found {
		return []types.NamespacedName{target}
	}
	return nil
}

func (r *rememberedSpecs) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.specs, key)
	maps.DeleteFunc(r.bySecret, func(_, target types.NamespacedName) bool { return target == key })
}
