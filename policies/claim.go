package policies

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	computev1alpha1 "github.com/portico-io/portico/api/compute/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// ClaimOf returns the KubernetesCluster claim that controls a target, or nil.
func ClaimOf(target *v1alpha1.KubernetesTarget) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(target)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != computev1alpha1.KubernetesClusterKind {
		return nil
	}
	return owner
}

// ConnectionDeniedReason returns why the Secret that a target names may not connect
// to it; "" when it may. The author of a target needs the right to read the Secret.
// The author of a claim needs no such right, so the claim has to control the Secret
// whenever Portico reads it. secret needs only metadata.
func ConnectionDeniedReason(target *v1alpha1.KubernetesTarget, secret metav1.Object) string {
	claim := ClaimOf(target)
	if claim == nil {
		return ""
	}
	owner := metav1.GetControllerOf(secret)
	if owner != nil && owner.UID == claim.UID && secret.GetNamespace() == target.Namespace {
		return ""
	}
	return fmt.Sprintf("secret %s is not controlled by %s %s, which controls this target; a user with the right to read that secret can name it in a KubernetesTarget",
		secret.GetName(), claim.Kind, claim.Name)
}
