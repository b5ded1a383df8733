package plan

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-io/portico/api/kinds/references"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// An object may need Secrets and ConfigMaps next to it on the target. Portico sends
// copies of them, which have the marks of the resource. By these marks the copies are
// found, corrected and deleted.

// ContentRevisionOf reads the revision and the digest of the content of an object.
func ContentRevisionOf(object *unstructured.Unstructured) (revision int64, digest string) {
	if object == nil {
		return 0, ""
	}
	count, digest, _ := strings.Cut(object.GetAnnotations()[v1alpha1.ContentAnnotation], ".")
	revision, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return 0, ""
	}
	return revision, digest
}

// DependencyKinds are the kinds that are copied.
var DependencyKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind(references.SecretKind),
	corev1.SchemeGroupVersion.WithKind(references.ConfigMapKind),
}

// Dependency is the state of a Secret, ConfigMap or ServiceAccount that an object needs.
type Dependency struct {
	v1alpha1.Dependency
	// CopyName is the name of the copy on the target. A dependency with a resource of its
	// own keeps its name.
	CopyName string
	// ForeignOwner names the owner of a shared dependency that exists on the target and
	// that Portico does not apply, or is "".
	ForeignOwner string
	// Found tells whether the dependency exists on the hub. Withheld is the reason why
	// it is not sent, or "".
	Found    bool
	Withheld string
	// Digest identifies the content. HasKeyPair tells whether it has a certificate with
	// its key.
	Digest     string
	HasKeyPair bool
	// Content is the content, if it was read. No reconcile keeps it for the next one.
	Content map[string]any
	// Source has the metadata of the object that was read.
	Source metav1.Object
}

// NewDependency returns a dependency of a resource, with the name of its copy.
func NewDependency(resource metav1.Object, need v1alpha1.Dependency) Dependency {
	if need.Native || need.Shared {
		return Dependency{Dependency: need, CopyName: need.Name}
	}
	return Dependency{Dependency: need, CopyName: references.CopyName(resource.GetName(), need.Name)}
}

// DependenciesOf returns the dependencies of a resource, each once, in order.
func DependenciesOf(resource *v1alpha1.KubernetesApplicationResource) []v1alpha1.Dependency {
	all := slices.Clone(resource.Spec.Dependencies)
	for _, ref := range resource.Spec.Secrets {
		if ref.Name != "" {
			all = append(all, v1alpha1.Dependency{Kind: references.SecretKind, Name: ref.Name})
		}
	}
	// A dependency that is listed twice is required if one of the entries requires it.
	slices.SortFunc(all, func(a, b v1alpha1.Dependency) int {
		optional := func(d v1alpha1.Dependency) int {
			if d.Optional {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(optional(a), optional(b)))
	})
	return slices.CompactFunc(all, func(a, b v1alpha1.Dependency) bool { return a.Kind == b.Kind && a.Name == b.Name })
}

// ContentOf returns the content of a Secret or ConfigMap that is sent: the data, and the
// type of a Secret, but no metadata. withheld is the reason why it is not sent, or "".
func ContentOf(source metav1.Object) (content map[string]any, withheld string) {
	content = map[string]any{}
	put := func(field string, data map[string]any) {
		if len(data) > 0 {
			content[field] = data
		}
	}
	encode := func(data map[string][]byte) map[string]any {
		out := map[string]any{}
		for key, value := range data {
			out[key] = base64.StdEncoding.EncodeToString(value)
		}
		return out
	}
	switch src := source.(type) {
	case *corev1.Secret:
		content["type"] = string(cmp.Or(src.Type, corev1.SecretTypeOpaque))
		put("data", encode(src.Data))
		return content, policies.HubOnlySecretReason(src.Type)
	case *corev1.ConfigMap:
		data := map[string]any{}
		for key, value := range src.Data {
			data[key] = value
		}
		put("data", data)
		put("binaryData", encode(src.BinaryData))
	}
	return content, ""
}

// HasKeyPair tells whether a content has a certificate with its key, as a Secret for TLS.
func HasKeyPair(content map[string]any) bool {
	data, _ := content["data"].(map[string]any)
	return data[corev1.TLSCertKey] != nil && data[corev1.TLSPrivateKeyKey] != nil
}

// CopiedFields returns the same fields of a copy on a target.
func CopiedFields(remote *unstructured.Unstructured) map[string]any {
	content := map[string]any{}
	for _, field := range []string{"type", "data", "binaryData"} {
		if value, ok := remote.Object[field]; ok {
			content[field] = value
		}
	}
	return content
}

// ContentDigest identifies a content. Users without the right to read the content may
// read the digest, so they must not be able to test guesses. Therefore its key is the
// UID of the original, which only users with the right to read the original know. The
// UID of a Secret or ConfigMap with a resource of its own is in that resource, so such
// a digest is on the object only.
func ContentDigest(uid types.UID, content map[string]any) string {
	data, err := json.Marshal(content)
	if err != nil {
		panic(err) // strings, and maps of strings
	}
	sum := hmac.New(sha256.New, []byte(uid))
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// DesiredCopy returns the copy to apply on the target.
func DesiredCopy(resource metav1.Object, l Dependency, namespace, hubID string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range l.Content {
		object.Object[field] = value
	}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(l.Kind))
	object.SetNamespace(namespace)
	object.SetName(l.CopyName)
	object.SetLabels(map[string]string{v1alpha1.ManagedByLabel: hubID, v1alpha1.HubNamespaceLabel: resource.GetNamespace()})
	object.SetAnnotations(map[string]string{
		v1alpha1.ResourceUIDAnnotation:       string(resource.GetUID()),
		v1alpha1.ResourceNamespaceAnnotation: resource.GetNamespace(),
		v1alpha1.ResourceNameAnnotation:      resource.GetName(),
		v1alpha1.CopyAnnotation:              l.Name,
		v1alpha1.AppliedAnnotation:           l.Digest,
	})
	return object
}

// ExcessCopies returns the copies that are no longer wanted. The object of the resource
// itself is no copy.
func ExcessCopies(copies []*unstructured.Unstructured, wanted []Dependency, namespace string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, object := range copies {
		_, isCopy := object.GetAnnotations()[v1alpha1.CopyAnnotation]
		isWanted := slices.ContainsFunc(wanted, func(l Dependency) bool {
			return l.Kind == object.GetKind() && l.CopyName == object.GetName() && object.GetNamespace() == namespace
		})
		if isCopy && !isWanted {
			out = append(out, object)
		}
	}
	return out
}

// SetEnvironmentDigest sets an annotation of the Pod template, if the resource requests
// it, so that Pods are replaced when a Secret or ConfigMap in their environment changes.
// It tells whether it changed the object.
func SetEnvironmentDigest(object *unstructured.Unstructured, resource metav1.Object, all []Dependency) bool {
	if !RollsPods(resource, object) {
		return false
	}
	var read []string
	for _, r := range references.Of(object) {
		i := slices.IndexFunc(all, func(l Dependency) bool { return l.Kind == r.Kind && l.CopyName == r.Name })
		if r.Env && i >= 0 {
			read = append(read, fmt.Sprintf("%s/%s=%s", r.Kind, r.Name, all[i].Digest))
		}
	}
	if len(read) == 0 {
		return false
	}
	sum := sha256.Sum256([]byte(strings.Join(read, "\n")))
	path := []string{"spec", "template", "metadata", "annotations"}
	annotations, _, _ := unstructured.NestedStringMap(object.Object, path...)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.EnvironmentAnnotation] = hex.EncodeToString(sum[:8])
	return unstructured.SetNestedStringMap(object.Object, annotations, path...) == nil
}

// RollsPods tells whether a resource requests new Pods after changes of their
// environment, and its object replaces Pods when its template changes.
func RollsPods(resource metav1.Object, object *unstructured.Unstructured) bool {
	if resource.GetAnnotations()[v1alpha1.RollAnnotation] != "true" {
		return false
	}
	switch object.GroupVersionKind().GroupKind() {
	case appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind(),
		appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind():
		return true
	}
	return false
}

// ProblemOf returns the reason and the message why a dependency is not sent.
func ProblemOf(l Dependency, namespace string) (reason, message string) {
	switch {
	case !l.Found:
		return v1alpha1.ReasonDependencyMissing, fmt.Sprintf("%s %s does not exist in namespace %s", l.Kind, l.Name, namespace)
	case l.Withheld != "":
		return v1alpha1.ReasonNeverSent, fmt.Sprintf("%s %s %s", l.Kind, l.Name, l.Withheld)
	}
	return "", ""
}

// DependenciesReadyMessage tells that an object has all that it needs on a target. It names
// the shared dependencies that Portico does not apply there.
func DependenciesReadyMessage(desired *unstructured.Unstructured, target string, all []Dependency) string {
	message := fmt.Sprintf("the dependencies of %s %s are on target %s", desired.GetKind(), desired.GetName(), target)
	for _, d := range all {
		if d.ForeignOwner != "" {
			message += fmt.Sprintf("; %s %s there belongs to %s, and is used as it is", d.Kind, d.Name, d.ForeignOwner)
		}
	}
	return message
}
