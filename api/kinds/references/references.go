// Package references finds and rewrites the references of an object: the Secrets, ConfigMaps
// and ServiceAccount that its Pods need, the TLS Secrets of an Ingress, and classes.
package references

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds/fields"
)

// The kinds that a Pod refers to by name, and of which copies are sent with it.
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
	// Field is the path of the field with the name, or the first one of several fields.
	Field string
}

// Of lists the references of an object's Pods, or the TLS Secrets of an Ingress, in
// order of kind and name. It is empty for other objects.
func Of(object *unstructured.Unstructured) []Reference {
	found := map[[2]string]Reference{}
	visitReferences(object, func(r Reference) string {
		key := [2]string{r.Kind, r.Name}
		if before, found2 := found[key]; found2 {
			r.Optional, r.Env, r.Field = r.Optional && before.Optional, r.Env || before.Env, before.Field
		}
		found[key] = r
		return r.Name
	})
	return slices.SortedFunc(maps.Values(found), func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// Rewrite replaces the name in each reference of an object by the result of a
// function. It changes nothing else.
func Rewrite(object *unstructured.Unstructured, name func(Reference) string) {
	visitReferences(object, name)
}

// SetPullSecrets gives the Pods of an object image pull secrets, if they name none. The
// API server does the same with those of a Pod's ServiceAccount.
func SetPullSecrets(object *unstructured.Unstructured, names []string) {
	spec := PodSpec(object)
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
	spec := PodSpec(object)
	if spec == nil {
		return ""
	}
	name, _ := spec["serviceAccountName"].(string)
	old, _ := spec["serviceAccount"].(string)
	return cmp.Or(name, old, "default")
}

// ServiceAccountField returns the field with the ServiceAccount of an object's Pods.
func ServiceAccountField(object *unstructured.Unstructured) string {
	return PodSpecPath(object).Child("serviceAccountName").String()
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

// PodSpecPath returns the path of the Pods' spec in an object.
func PodSpecPath(object *unstructured.Unstructured) *field.Path {
	path := append(podTemplatePath(object), "spec")
	return field.NewPath(path[0], path[1:]...)
}

// visitReferences calls a function for each reference of an object, and writes the returned
// name. It skips malformed references: the target refuses them. An Ingress works without its
// TLS Secrets.
func visitReferences(object *unstructured.Unstructured, name func(Reference) string) {
	if object.GroupVersionKind() == networkingv1.SchemeGroupVersion.WithKind("Ingress") {
		for i, tls := range fields.Items(fields.Child(object.Object, "spec")["tls"]) {
			optional := func(r Reference) string {
				r.Optional = true
				return name(r)
			}
			visitReference(tls, "secretName", field.NewPath("spec", "tls").Index(i), Reference{Kind: SecretKind}, optional)
		}
		return
	}
	pod, path := PodSpec(object), PodSpecPath(object)
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, container := range fields.Items(pod[list]) {
			visitContainer(container, path.Child(list).Index(i), name)
		}
	}
	for i, volume := range fields.Items(pod["volumes"]) {
		visitVolume(volume, path.Child("volumes").Index(i), name)
	}
	for i, secret := range fields.Items(pod["imagePullSecrets"]) {
		visitReference(secret, "name", path.Child("imagePullSecrets").Index(i), Reference{Kind: SecretKind}, name)
	}
}

func visitContainer(container map[string]any, path *field.Path, name func(Reference) string) {
	for i, variable := range fields.Items(container["env"]) {
		from, at := fields.Child(variable, "valueFrom"), path.Child("env").Index(i).Child("valueFrom")
		visitReference(fields.Child(from, "secretKeyRef"), "name", at.Child("secretKeyRef"), Reference{Kind: SecretKind, Env: true}, name)
		visitReference(fields.Child(from, "configMapKeyRef"), "name", at.Child("configMapKeyRef"), Reference{Kind: ConfigMapKind, Env: true}, name)
	}
	for i, from := range fields.Items(container["envFrom"]) {
		at := path.Child("envFrom").Index(i)
		visitReference(fields.Child(from, "secretRef"), "name", at.Child("secretRef"), Reference{Kind: SecretKind, Env: true}, name)
		visitReference(fields.Child(from, "configMapRef"), "name", at.Child("configMapRef"), Reference{Kind: ConfigMapKind, Env: true}, name)
	}
}

func visitVolume(volume map[string]any, path *field.Path, name func(Reference) string) {
	visitReference(fields.Child(volume, "secret"), "secretName", path.Child("secret"), Reference{Kind: SecretKind}, name)
	visitReference(fields.Child(volume, "configMap"), "name", path.Child("configMap"), Reference{Kind: ConfigMapKind}, name)
	for i, source := range fields.Items(fields.Child(volume, "projected")["sources"]) {
		at := path.Child("projected", "sources").Index(i)
		visitReference(fields.Child(source, "secret"), "name", at.Child("secret"), Reference{Kind: SecretKind}, name)
		visitReference(fields.Child(source, "configMap"), "name", at.Child("configMap"), Reference{Kind: ConfigMapKind}, name)
	}
	visitReference(fields.Child(fields.Child(volume, "csi"), "nodePublishSecretRef"), "name", path.Child("csi", "nodePublishSecretRef"), Reference{Kind: SecretKind}, name)
	visitReference(fields.Child(volume, "azureFile"), "secretName", path.Child("azureFile"), Reference{Kind: SecretKind}, name)
	for _, driver := range []string{"cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"} {
		visitReference(fields.Child(fields.Child(volume, driver), "secretRef"), "name", path.Child(driver, "secretRef"), Reference{Kind: SecretKind}, name)
	}
}

// visitReference calls the function for the name in a field of an object.
func visitReference(object map[string]any, key string, path *field.Path, r Reference, name func(Reference) string) {
	r.Name, _ = object[key].(string)
	if r.Name == "" || r.Kind == ConfigMapKind && r.Name == RootCA {
		return
	}
	r.Field = path.Child(key).String()
	r.Optional, _ = object["optional"].(bool)
	if renamed := name(r); renamed != r.Name {
		object[key] = renamed
	}
}
