package publication

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
)

// Cluster API's own names.
const (
	clusterAPIGroup        = "cluster.x-k8s.io"
	clusterAPIKind         = "Cluster"
	clusterAPINameLabel    = clusterAPIGroup + "/cluster-name"
	clusterAPISecretSuffix = "-kubeconfig"
	clusterAPISecretKey    = "value"
	clusterAPIProvisioned  = "Provisioned"
)

// bound is Crossplane's binding phase of a resource that may be used.
const bound = "Bound"

// keys of a connection Secret; nothing else of it travels.
var keys = []string{
	v1alpha1.SecretKubeconfig, v1alpha1.SecretEndpoint, v1alpha1.SecretClusterCA,
	v1alpha1.SecretClientCert, v1alpha1.SecretClientKey,
	v1alpha1.SecretUsername, v1alpha1.SecretPassword, v1alpha1.SecretToken,
}

// Refusal is why a cluster is not published: a condition's reason and message.
type Refusal struct {
	Reason  string
	Message string
}

func refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Kind of the resource that a target names.
func Kind(ref v1alpha1.ClusterReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
}

// Title is how people are told of the resource: its kind and name.
func Title(ref v1alpha1.ClusterReference) string { return ref.Kind + "/" + ref.Name }

// identity tells one managed cluster from another, in whatever version.
func identity(ref v1alpha1.ClusterReference) string {
	return Kind(ref).GroupKind().String() + "/" + ref.Name
}

func isClusterAPI(kind schema.GroupVersionKind) bool {
	return kind.Group == clusterAPIGroup && kind.Kind == clusterAPIKind
}

// Key says where the resource is that a target names: a managed cluster has no
// namespace, and a Cluster of Cluster API is in the target's own.
func Key(target *v1alpha1.KubernetesTarget, namespaced bool) (types.NamespacedName, *Refusal) {
	ref := *target.Spec.ClusterRef
	kind := Kind(ref)
	switch {
	case !namespaced:
		return types.NamespacedName{Name: ref.Name}, nil
	case isClusterAPI(kind):
		return types.NamespacedName{Namespace: target.Namespace, Name: ref.Name}, nil
	}
	return types.NamespacedName{}, refuse(v1alpha1.ReasonInvalidClusterRef,
		"%s has a namespace; only cluster-scoped resources, and %s of %s, can be published", kind.GroupKind(), clusterAPIKind, clusterAPIGroup)
}

// Secret names the connection Secret of a managed cluster, if the cluster may be
// published.
func Secret(cluster *unstructured.Unstructured) (types.NamespacedName, *Refusal) {
	name := cluster.GetKind() + " " + cluster.GetName()
	if cluster.GetDeletionTimestamp() != nil {
		return types.NamespacedName{}, refuse(v1alpha1.ReasonClusterNotBound, "%s is being deleted", name)
	}
	if isClusterAPI(cluster.GroupVersionKind()) {
		if phase, _, _ := unstructured.NestedString(cluster.Object, "status", "phase"); phase != clusterAPIProvisioned {
			return types.NamespacedName{}, refuse(v1alpha1.ReasonClusterNotBound,
				"%s is not provisioned: its status.phase is %s", name, quoted(phase))
		}
		return types.NamespacedName{Namespace: cluster.GetNamespace(), Name: cluster.GetName() + clusterAPISecretSuffix}, nil
	}
	if why := Unbound(cluster); why != "" {
		return types.NamespacedName{}, refuse(v1alpha1.ReasonClusterNotBound, "%s is not bound: %s", name, why)
	}
	ref, _, _ := unstructured.NestedStringMap(cluster.Object, "spec", "writeConnectionSecretToRef")
	if ref["namespace"] == "" || ref["name"] == "" {
		return types.NamespacedName{}, refuse(v1alpha1.ReasonSecretMissing,
			"%s writes no connection secret; give its spec.writeConnectionSecretToRef a namespace and a name", name)
	}
	return types.NamespacedName{Namespace: ref["namespace"], Name: ref["name"]}, nil
}

// Unbound says why a resource is not bound, or "". Where there is a binding
// phase, it decides: a classic resource can be ready, and nobody's. Kinds that
// are newer than claims that bind have none; those are usable when ready, and
// that somebody may use this one is what the right to publish it says.
func Unbound(resource *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(resource.Object, "status", "bindingPhase")
	if phase == bound {
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

// Data is what of a managed cluster's connection Secret is copied. secret is nil
// when there is none.
func Data(cluster *unstructured.Unstructured, at types.NamespacedName, secret *corev1.Secret) (map[string][]byte, *Refusal) {
	name := cluster.GetKind() + " " + cluster.GetName()
	if secret == nil {
		return nil, refuse(v1alpha1.ReasonSecretMissing, "the connection secret %s of %s does not exist", at, name)
	}
	if isClusterAPI(cluster.GroupVersionKind()) {
		if why := notOfClusterAPI(cluster, secret); why != "" {
			return nil, refuse(v1alpha1.ReasonSecretNotControlled, "%s does not control secret %s: %s", name, at, why)
		}
		kubeconfig := secret.Data[clusterAPISecretKey]
		if len(kubeconfig) == 0 {
			return nil, refuse(v1alpha1.ReasonInvalidConnection, "the connection secret %s of %s has no key %s", at, name, clusterAPISecretKey)
		}
		return map[string][]byte{v1alpha1.SecretKubeconfig: kubeconfig}, nil
	}
	if !metav1.IsControlledBy(secret, cluster) {
		return nil, refuse(v1alpha1.ReasonSecretNotControlled,
			"%s does not control secret %s: the secret's controlling owner reference is not to this %s", name, at, cluster.GetKind())
	}
	data := map[string][]byte{}
	for _, key := range keys {
		if value := secret.Data[key]; len(value) > 0 {
			data[key] = value
		}
	}
	if len(data) == 0 {
		return nil, refuse(v1alpha1.ReasonInvalidConnection, "the connection secret %s of %s has none of the keys %s", at, name, strings.Join(keys, ", "))
	}
	return data, nil
}

// notOfClusterAPI says why a Secret is not the kubeconfig of a Cluster, or "".
// Cluster API labels it, and makes the Cluster its owner, or the control plane
// that the Cluster names.
func notOfClusterAPI(cluster *unstructured.Unstructured, secret *corev1.Secret) string {
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

func quoted(phase string) string {
	if phase == "" {
		return "empty"
	}
	return phase
}

// Trim returns of a resource what is decided by here, so that more of it need
// not be kept, and a change of anything else need not be looked at.
func Trim(resource *unstructured.Unstructured) *unstructured.Unstructured {
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
	// Of the conditions, whether it is usable; not when that was last checked.
	if Unbound(resource) == "" && Unbound(trimmed) != "" {
		_ = unstructured.SetNestedSlice(trimmed.Object, []any{map[string]any{
			"type": v1alpha1.Ready, "status": string(metav1.ConditionTrue),
		}}, "status", "conditions")
	}
	return trimmed
}
