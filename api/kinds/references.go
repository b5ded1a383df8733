package kinds

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The kinds that a Pod refers to by name, and that are sent with it.
const (
	SecretKind    = "Secret"
	ConfigMapKind = "ConfigMap"
)

// RootCA is the ConfigMap that every cluster keeps in each of its namespaces,
// with its own certificate authority. The hub's would be wrong on a target.
const RootCA = "kube-root-ca.crt"

// Reference is the reference of a Pod to a Secret or ConfigMap.
type Reference struct {
	// Kind is Secret or ConfigMap, and Name its name in the Pod's namespace.
	Kind, Name string
	// Optional is true when the Pod starts without it, wherever it refers to it.
	Optional bool
	// Env is true when containers read it once, as they start.
	Env bool
}

// References lists the references of an object's Pods, in order of kind and name. It is
// empty for an object without a Pod template.
func References(object *unstructured.Unstructured) []Reference {
	found := map[[2]string]Reference{}
	visitReferences(podSpec(object), func(r Reference) string {
		key := [2]string{r.Kind, r.Name}
		if before, found2 := found[key]; found2 {
			r.Optional, r.Env = r.Optional && before.Optional, r.Env || before.Env
		}
		found[key] = r
		return r.Name
	})
	return slices.SortedFunc(maps.Values(found), func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// RewriteReferences replaces the name in each reference of an object's Pods by the
// result of a function. It changes nothing else.
func RewriteReferences(object *unstructured.Unstructured, name func(Reference) string) {
	visitReferences(podSpec(object), name)
}

// SetPullSecrets gives the Pods of an object image pull secrets, if they name none. The
// API server does the same with those of a Pod's ServiceAccount.
func SetPullSecrets(object *unstructured.Unstructured, names []string) {
	spec := podSpec(object)
	if own, _ := spec["imagePullSecrets"].([]any); spec == nil || len(own) > 0 || len(names) == 0 {
		return
	}
	secrets := make([]any, 0, len(names))
	for _, name := range names {
		secrets = append(secrets, map[string]any{"name": name})
	}
	spec["imagePullSecrets"] = secrets
}

// ServiceAccount names the ServiceAccount of an object's Pods; empty when it
// has none.
func ServiceAccount(object *unstructured.Unstructured) string {
	spec := podSpec(object)
	if spec == nil {
		return ""
	}
	name, _ := spec["serviceAccountName"].(string)
	old, _ := spec["serviceAccount"].(string)
	return cmp.Or(name, old, "default")
}

// CopyName names the copy of a Secret or ConfigMap that a resource takes to its
// target: "<resource>-<name>" (S0). One that would be too long is cut, and gets a hash.
func CopyName(resource, name string) string {
	full := resource + "-" + name
	if len(full) <= validation.DNS1123SubdomainMaxLength {
		return full
	}
	hash := fnv.New64a()
	hash.Write([]byte(full))
	tail := fmt.Sprintf("-%016x", hash.Sum64())
	return strings.TrimRight(full[:validation.DNS1123SubdomainMaxLength-len(tail)], "-.") + tail
}

// visitReferences calls a function for each reference of a Pod, and writes the returned
// name. It skips malformed references: the target refuses them.
func visitReferences(pod map[string]any, name func(Reference) string) {
	refer := func(object map[string]any, field string, r Reference) {
		r.Name, _ = object[field].(string)
		if r.Name == "" || r.Kind == ConfigMapKind && r.Name == RootCA {
			return
		}
		r.Optional, _ = object["optional"].(bool)
		if renamed := name(r); renamed != r.Name {
			object[field] = renamed
		}
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, container := range items(pod[list]) {
			for _, variable := range items(container["env"]) {
				from := child(variable, "valueFrom")
				refer(child(from, "secretKeyRef"), "name", Reference{Kind: SecretKind, Env: true})
				refer(child(from, "configMapKeyRef"), "name", Reference{Kind: ConfigMapKind, Env: true})
			}
			for _, from := range items(container["envFrom"]) {
				refer(child(from, "secretRef"), "name", Reference{Kind: SecretKind, Env: true})
				refer(child(from, "configMapRef"), "name", Reference{Kind: ConfigMapKind, Env: true})
			}
		}
	}
	for _, volume := range items(pod["volumes"]) {
		refer(child(volume, "secret"), "secretName", Reference{Kind: SecretKind})
		refer(child(volume, "configMap"), "name", Reference{Kind: ConfigMapKind})
		for _, source := range items(child(volume, "projected")["sources"]) {
			refer(child(source, "secret"), "name", Reference{Kind: SecretKind})
			refer(child(source, "configMap"), "name", Reference{Kind: ConfigMapKind})
		}
		refer(child(child(volume, "csi"), "nodePublishSecretRef"), "name", Reference{Kind: SecretKind})
		refer(child(volume, "azureFile"), "secretName", Reference{Kind: SecretKind})
		for _, driver := range []string{"cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"} {
			refer(child(child(volume, driver), "secretRef"), "name", Reference{Kind: SecretKind})
		}
	}
	for _, secret := range items(pod["imagePullSecrets"]) {
		refer(secret, "name", Reference{Kind: SecretKind})
	}
}

func child(object map[string]any, key string) map[string]any {
	fields, _ := object[key].(map[string]any)
	return fields
}

func items(list any) []map[string]any {
	values, _ := list.([]any)
	var out []map[string]any
	for _, value := range values {
		if object, ok := value.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}
