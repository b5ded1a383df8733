package kinds

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
)

// DefaultServiceAccount is the ServiceAccount that every cluster keeps in each of its
// namespaces. It is not sent. Its image pull secrets go into the Pods.
const DefaultServiceAccount = "default"

// ProjectServiceAccount returns the ServiceAccount to apply on a target: labels,
// annotations, image pull secrets and automountServiceAccountToken. The Secrets in its
// field secrets hold tokens of the hub, and are not sent.
func ProjectServiceAccount(native *corev1.ServiceAccount) *unstructured.Unstructured {
	template := &unstructured.Unstructured{Object: map[string]any{}}
	template.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(ServiceAccountKind))
	setAnnotations(template, projectMetadata(template, native))
	var secrets []any
	for _, secret := range native.ImagePullSecrets {
		if secret.Name != "" {
			secrets = append(secrets, map[string]any{"name": secret.Name})
		}
	}
	if len(secrets) > 0 {
		template.Object["imagePullSecrets"] = secrets
	}
	if native.AutomountServiceAccountToken != nil {
		template.Object["automountServiceAccountToken"] = *native.AutomountServiceAccountToken
	}
	return template
}

// ProjectContent returns the Secret or ConfigMap to apply on a target, without its content:
// its labels. No annotation is sent, because tools keep copies of the content there.
func ProjectContent(gvk schema.GroupVersionKind, native metav1.Object) *unstructured.Unstructured {
	template := &unstructured.Unstructured{Object: map[string]any{}}
	template.SetGroupVersionKind(gvk)
	projectMetadata(template, native)
	return template
}

// RenamePullSecrets makes a ServiceAccount refer to the Secrets that name returns for its
// image pull secrets.
func RenamePullSecrets(account *unstructured.Unstructured, name func(string) string) {
	for _, secret := range fields.Items(account.Object["imagePullSecrets"]) {
		if old, _ := secret["name"].(string); old != "" {
			secret["name"] = name(old)
		}
	}
}

// UseDefaultServiceAccount makes a Pod use the ServiceAccount that every namespace has.
func UseDefaultServiceAccount(pod *unstructured.Unstructured) {
	unstructured.RemoveNestedField(pod.Object, "spec", "serviceAccountName")
	unstructured.RemoveNestedField(pod.Object, "spec", "serviceAccount")
}

// DependencyName names the resource that sends a shared dependency to a target:
// "<name>.<target>-<kind in lower case>".
func DependencyName(kind, name, target string) string { return ResourceName(kind, name+"."+target) }

// IsNameOfDependency tells whether a resource has the name of one that sends an object
// as a dependency, or for its own label.
func IsNameOfDependency(resource, kind, name string) bool {
	return resource == ResourceName(kind, name) ||
		strings.HasPrefix(resource, name+".") && strings.HasSuffix(resource, ResourceName(kind, ""))
}
