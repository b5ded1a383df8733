package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// ConnectionSecret returns the namespace and the name of the Secret that a target
// names; zero when it names none.
func ConnectionSecret(target *v1alpha1.KubernetesTarget) types.NamespacedName {
	ref := target.Spec.ConnectionSecretRef
	if ref == nil || ref.Name == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, target.Namespace), Name: ref.Name}
}

// ConnectionSecretIndex finds targets of all namespaces by their connection Secret.
// Its keys are those of ConnectionSecretKeys.
const ConnectionSecretIndex = "spec.connectionSecretRef"

// ConnectionSecretKeys is the function of ConnectionSecretIndex.
func ConnectionSecretKeys(object any) []string {
	target, ok := object.(*v1alpha1.KubernetesTarget)
	if !ok || ConnectionSecret(target) == (types.NamespacedName{}) {
		return nil
	}
	return []string{ConnectionSecret(target).String()}
}

// HubOnlyConnectionReason returns why a Secret that connects to targets is never
// sent; "" when it connects to none. A user who may run objects on a target may not
// read its credential there.
func HubOnlyConnectionReason(secret types.NamespacedName, targets []v1alpha1.KubernetesTarget) string {
	var connected []string
	for i := range targets {
		if ConnectionSecret(&targets[i]) == secret {
			connected = append(connected, qualifiedTargetName(secret.Namespace, &targets[i]))
		}
	}
	if len(connected) == 0 {
		return ""
	}
	slices.Sort(connected)
	return "connects to target " + strings.Join(connected, ", ") + ", and is never sent"
}

// qualifiedTargetName names a target to a user of a namespace.
func qualifiedTargetName(namespace string, target *v1alpha1.KubernetesTarget) string {
	if target.Namespace == namespace {
		return target.Name
	}
	return target.Namespace + "/" + target.Name
}

// ValidateConnectionNamespace returns an error for a connection Secret in a namespace
// that Portico's webhooks exclude: they could not validate the Secret, nor protect
// it while the target is in use. It allows a namespace that the target named before.
// old is nil on create.
func (f AllowDefaults) ValidateConnectionNamespace(target, old *v1alpha1.KubernetesTarget) field.ErrorList {
	ref := target.Spec.ConnectionSecretRef
	if ref == nil || ref.Namespace == "" || ref.Namespace == target.Namespace ||
		old != nil && old.Spec.ConnectionSecretRef != nil && old.Spec.ConnectionSecretRef.Namespace == ref.Namespace {
		return nil
	}
	switch ref.Namespace {
	case metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, f.PorticoNamespace:
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "connectionSecretRef", "namespace"), fmt.Sprintf(
			"namespace %s is excluded from Portico's webhooks, which could not protect the Secret while it is in use; put it into another namespace", ref.Namespace))}
	}
	return nil
}

// RelatedTargetIndex finds targets, of all namespaces, by RelatedTargetKeys.
const RelatedTargetIndex = "related"

// RelatedTargetKeys is the function of RelatedTargetIndex. Two targets with a key in
// common are related: they are in one namespace, name one connection Secret, or name
// one managed cluster. Publish policies see the related targets of a target.
func RelatedTargetKeys(object any) []string {
	target, ok := object.(*v1alpha1.KubernetesTarget)
	if !ok {
		return nil
	}
	out := []string{"namespace/" + target.Namespace}
	if secret := ConnectionSecret(target); secret.Name != "" {
		out = append(out, "secret/"+secret.String())
	}
	if ref := target.Spec.ClusterRef; ref != nil {
		out = append(out, "cluster/"+ref.APIVersion+"/"+ref.Kind+"/"+ref.Name)
	}
	return out
}
