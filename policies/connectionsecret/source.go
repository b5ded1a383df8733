package connectionsecret

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/credentials"
)

// The names that Cluster API defines.
const (
	clusterAPIGroup        = "cluster.x-k8s.io"
	clusterAPIKind         = "Cluster"
	clusterAPINameLabel    = clusterAPIGroup + "/cluster-name"
	clusterAPISecretSuffix = "-kubeconfig"
	clusterAPISecretKey    = "value"
	clusterAPIProvisioned  = "Provisioned"
)

// bindingPhaseBound is Crossplane's binding phase of a resource that may be used.
const bindingPhaseBound = "Bound"

// Refusal is the reason and the message of a condition, for a cluster that is not
// published.
type Refusal struct {
	Reason  string
	Message string
}

func newRefusal(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// ControlsSecret tells whether a resource controls the Secret that it names.
func ControlsSecret(resource *unstructured.Unstructured, secret metav1.Object) bool {
	return metav1.IsControlledBy(secret, resource)
}

// ClusterKind returns the kind of the resource that a target names.
func ClusterKind(ref v1alpha1.ClusterReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
}

// ClusterTitle returns the kind and name of the resource, for messages.
func ClusterTitle(ref v1alpha1.ClusterReference) string { return ref.Kind + "/" + ref.Name }

// clusterIdentity returns a text that is the same for all API versions of a managed
// cluster.
func clusterIdentity(ref v1alpha1.ClusterReference) string {
	return ClusterKind(ref).GroupKind().String() + "/" + ref.Name
}

func isClusterAPI(kind schema.GroupVersionKind) bool {
	return kind.Group == clusterAPIGroup && kind.Kind == clusterAPIKind
}

// ClusterKey returns the key of the resource that a target names: a managed cluster
// has no namespace, and a Cluster of Cluster API is in the namespace of the target.
func ClusterKey(target *v1alpha1.KubernetesTarget, namespaced bool) (types.NamespacedName, *Refusal) {
	ref := *target.Spec.ClusterRef
	kind := ClusterKind(ref)
	switch {
	case !namespaced:
		return types.NamespacedName{Name: ref.Name}, nil
	case isClusterAPI(kind):
		return types.NamespacedName{Namespace: target.Namespace, Name: ref.Name}, nil
	}
	return types.NamespacedName{}, newRefusal(v1alpha1.ReasonInvalidClusterRef,
		"%s has a namespace; only cluster-scoped resources, and %s of %s, can be published", kind.GroupKind(), clusterAPIKind, clusterAPIGroup)
}

// SourceSecret returns the key of the connection Secret of a managed cluster, or a
// refusal if the cluster may not be published.
func SourceSecret(cluster *unstructured.Unstructured) (types.NamespacedName, *Refusal) {
	name := cluster.GetKind() + " " + cluster.GetName()
	if cluster.GetDeletionTimestamp() != nil {
		return types.NamespacedName{}, newRefusal(v1alpha1.ReasonClusterNotBound, "%s is being deleted", name)
	}
	if isClusterAPI(cluster.GroupVersionKind()) {
		if phase, _, _ := unstructured.NestedString(cluster.Object, "status", "phase"); phase != clusterAPIProvisioned {
			return types.NamespacedName{}, newRefusal(v1alpha1.ReasonClusterNotBound,
				"%s is not provisioned: its status.phase is %s", name, phaseOrEmpty(phase))
		}
		return types.NamespacedName{Namespace: cluster.GetNamespace(), Name: cluster.GetName() + clusterAPISecretSuffix}, nil
	}
	if why := NotBoundReason(cluster); why != "" {
		return types.NamespacedName{}, newRefusal(v1alpha1.ReasonClusterNotBound, "%s is not bound: %s", name, why)
	}
	ref, _, _ := unstructured.NestedStringMap(cluster.Object, "spec", "writeConnectionSecretToRef")
	if ref["namespace"] == "" || ref["name"] == "" {
		return types.NamespacedName{}, newRefusal(v1alpha1.ReasonSecretMissing,
			"%s writes no connection secret; give its spec.writeConnectionSecretToRef a namespace and a name", name)
	}
	return types.NamespacedName{Namespace: ref["namespace"], Name: ref["name"]}, nil
}

// NotBoundReason returns why a resource is not bound; "" if it is. A binding phase
// decides, where there is one: a classic resource can be ready without being bound.
// Newer kinds have no binding phase, and are usable when they are ready; the right to
// publish the resource says that it may be used.
func NotBoundReason(resource *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(resource.Object, "status", "bindingPhase")
	if phase == bindingPhaseBound {
		return ""
	}
	if phase != "" {
		return "its status.bindingPhase is " + phase
	}
	conditions, _, _ := unstructured.NestedSlice(resource.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] == v1alpha1.Ready && condition["status"] == string(metav1.ConditionTrue) {
			return ""
		}
	}
	return "it has neither status.bindingPhase Bound nor condition Ready"
}

// DataToCopy returns the keys of a managed cluster's connection Secret that are
// copied. secret is nil if there is none.
func DataToCopy(cluster *unstructured.Unstructured, at types.NamespacedName, secret *corev1.Secret) (map[string][]byte, *Refusal) {
	name := cluster.GetKind() + " " + cluster.GetName()
	if secret == nil {
		return nil, newRefusal(v1alpha1.ReasonSecretMissing, "the connection secret %s of %s does not exist", at, name)
	}
	if isClusterAPI(cluster.GroupVersionKind()) {
		if why := clusterAPIOwnershipProblem(cluster, secret); why != "" {
			return nil, newRefusal(v1alpha1.ReasonSecretNotControlled, "%s does not control secret %s: %s", name, at, why)
		}
		kubeconfig := secret.Data[clusterAPISecretKey]
		if len(kubeconfig) == 0 {
			return nil, newRefusal(v1alpha1.ReasonInvalidConnection, "the connection secret %s of %s has no key %s", at, name, clusterAPISecretKey)
		}
		return map[string][]byte{v1alpha1.SecretKubeconfig: kubeconfig}, nil
	}
	if !ControlsSecret(cluster, secret) {
		return nil, newRefusal(v1alpha1.ReasonSecretNotControlled,
			"%s does not control secret %s: the secret's controlling owner reference is not to this %s", name, at, cluster.GetKind())
	}
	data := map[string][]byte{}
	for _, key := range credentials.ConnectionKeys {
		if value := secret.Data[key]; len(value) > 0 {
			data[key] = value
		}
	}
	if len(data) == 0 {
		return nil, newRefusal(v1alpha1.ReasonInvalidConnection, "the connection secret %s of %s has none of the keys %s", at, name, strings.Join(credentials.ConnectionKeys, ", "))
	}
	return data, nil
}

// clusterAPIOwnershipProblem returns why a Secret is not the kubeconfig of a Cluster;
// "" if it is. Cluster API labels the Secret. Its owner is the Cluster, or the
// control plane that the Cluster names.
func clusterAPIOwnershipProblem(cluster *unstructured.Unstructured, secret *corev1.Secret) string {
	if secret.Labels[clusterAPINameLabel] != cluster.GetName() {
		return "the secret is not labelled " + clusterAPINameLabel + "=" + cluster.GetName()
	}
	plane, _, _ := unstructured.NestedMap(cluster.Object, "spec", "controlPlaneRef")
	for _, owner := range secret.OwnerReferences {
		if owner.UID == cluster.GetUID() {
			return ""
		}
		if owner.Controller == nil || !*owner.Controller || owner.Kind != plane["kind"] || owner.Name != plane["name"] {
			continue
		}
		// Until v1beta1 a reference has an apiVersion, and then an apiGroup.
		version, _ := plane["apiVersion"].(string)
		group, _ := plane["apiGroup"].(string)
		if schema.FromAPIVersionAndKind(owner.APIVersion, "").Group == cmp.Or(group, schema.FromAPIVersionAndKind(version, "").Group) {
			return ""
		}
	}
	return "neither it nor its control plane owns the secret"
}

func phaseOrEmpty(phase string) string {
	if phase == "" {
		return "empty"
	}
	return phase
}

// TrimCluster returns the fields of a resource that the decisions here depend on.
// Only these are kept in memory, and only a change of these starts a reconcile.
func TrimCluster(resource *unstructured.Unstructured) *unstructured.Unstructured {
	trimmed := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range [][]string{
		{"apiVersion"},
		{"kind"},
		{"metadata", "name"},
		{"metadata", "namespace"},
		{"metadata", "uid"},
		{"metadata", "labels"},
		{"metadata", "deletionTimestamp"},
		{"spec", "writeConnectionSecretToRef"},
		{"spec", "controlPlaneRef"},
		{"status", "bindingPhase"},
		{"status", "phase"},
	} {
		if value, found, _ := unstructured.NestedFieldCopy(resource.Object, path...); found {
			_ = unstructured.SetNestedField(trimmed.Object, value, path...)
		}
	}
	// The only condition that is kept is whether the resource is ready, without the
	// time of the last check.
	if NotBoundReason(resource) == "" && NotBoundReason(trimmed) != "" {
		_ = unstructured.SetNestedSlice(trimmed.Object, []any{map[string]any{
			"type": v1alpha1.Ready, "status": string(metav1.ConditionTrue),
		}}, "status", "conditions")
	}
	return trimmed
}
