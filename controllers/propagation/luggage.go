package propagation

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// A resource's luggage are the Secrets and ConfigMaps that its object needs next
// to it. Their copies carry its marks, so they are found, put right and deleted
// with it.

// luggageKinds are the kinds that are taken along.
var luggageKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind(kinds.SecretKind),
	corev1.SchemeGroupVersion.WithKind(kinds.ConfigMapKind),
}

// luggage is one of them.
type luggage struct {
	v1alpha1.Dependency
	// copy is its name on the target, which is its own if it travels by itself.
	copy string
	// found is false when the hub has no such thing, and kept says why what it
	// has is not sent.
	found bool
	kept  string
	// digest tells what is in it from anything else it could be.
	digest string
	// content is what travels, if it was read; it is kept no longer than that.
	content map[string]any
	// source is what the content was read from.
	source metav1.Object
}

func luggageOf(resource metav1.Object, need v1alpha1.Dependency) luggage {
	if need.Native {
		return luggage{Dependency: need, copy: need.Name}
	}
	return luggage{Dependency: need, copy: kinds.CopyName(resource.GetName(), need.Name)}
}

// needs lists what a resource takes along, each once, in order.
func needs(resource *v1alpha1.KubernetesApplicationResource) []v1alpha1.Dependency {
	all := slices.Clone(resource.Spec.Dependencies)
	for _, ref := range resource.Spec.Secrets {
		if ref.Name != "" {
			all = append(all, v1alpha1.Dependency{Kind: kinds.SecretKind, Name: ref.Name})
		}
	}
	// What is needed at all comes before what is optional, and stays.
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

// IndexDependencies is the function of policies.DependencyIndex.
func IndexDependencies(object client.Object) []string {
	resource, ok := object.(*v1alpha1.KubernetesApplicationResource)
	if !ok {
		return nil
	}
	var out []string
	for _, need := range needs(resource) {
		out = append(out, policies.DependencyKey(need.Kind, need.Name))
	}
	if owner := policies.ContentOwner(resource); owner != nil {
		out = append(out, policies.DependencyKey(owner.Kind, owner.Name))
	}
	return out
}

// contentOf returns what travels of a Secret or ConfigMap: the data, and of a
// Secret its type. Nothing of its metadata does.
func contentOf(source client.Object) (content map[string]any, kept string) {
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
	switch s := source.(type) {
	case *corev1.Secret:
		content["type"] = string(cmp.Or(s.Type, corev1.SecretTypeOpaque))
		put("data", encode(s.Data))
		return content, policies.KeepsSecret(s.Type)
	case *corev1.ConfigMap:
		data := map[string]any{}
		for key, value := range s.Data {
			data[key] = value
		}
		put("data", data)
		put("binaryData", encode(s.BinaryData))
	}
	return content, ""
}

// travelling picks the same of a copy on a target.
func travelling(remote *unstructured.Unstructured) map[string]any {
	content := map[string]any{}
	for _, field := range []string{"type", "data", "binaryData"} {
		if value, ok := remote.Object[field]; ok {
			content[field] = value
		}
	}
	return content
}

// fingerprint tells one content from another. It is written where people may
// look who may not read the content, so it has to be of no use for guessing:
// its key is the original's UID, which nobody sees who may not read that. The UID
// of what travels by itself is in its resource, so that fingerprint is nowhere but
// on the object itself.
func fingerprint(uid types.UID, content map[string]any) string {
	data, err := json.Marshal(content)
	if err != nil {
		panic(err) // strings, and maps of them
	}
	sum := hmac.New(sha256.New, []byte(uid))
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// desireCopy returns the copy to apply on the target.
func desireCopy(resource metav1.Object, l luggage, namespace, hubID string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range l.content {
		object.Object[field] = value
	}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(l.Kind))
	object.SetNamespace(namespace)
	object.SetName(l.copy)
	object.SetLabels(map[string]string{v1alpha1.ManagedByLabel: hubID})
	object.SetAnnotations(map[string]string{
		v1alpha1.ResourceUIDAnnotation:       string(resource.GetUID()),
		v1alpha1.ResourceNamespaceAnnotation: resource.GetNamespace(),
		v1alpha1.ResourceNameAnnotation:      resource.GetName(),
		v1alpha1.CopyAnnotation:              l.Name,
		v1alpha1.AppliedAnnotation:           l.digest,
	})
	return object
}

// superfluous picks the copies that are not wanted any more, of all that are
// the resource's. Its own object is none of them.
func superfluous(copies []*unstructured.Unstructured, wanted []luggage, namespace string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, object := range copies {
		_, isCopy := object.GetAnnotations()[v1alpha1.CopyAnnotation]
		stays := slices.ContainsFunc(wanted, func(l luggage) bool {
			return l.Kind == object.GetKind() && l.copy == object.GetName() && object.GetNamespace() == namespace
		})
		if isCopy && !stays {
			out = append(out, object)
		}
	}
	return out
}

// stampEnvironment makes the object's Pods new ones whenever something changes
// that they read as they start, if the resource asks for it. It tells whether it
// changed the object.
func stampEnvironment(object *unstructured.Unstructured, resource metav1.Object, all []luggage) bool {
	if !rolls(resource) {
		return false
	}
	var read []string
	for _, r := range kinds.References(object) {
		i := slices.IndexFunc(all, func(l luggage) bool { return l.Kind == r.Kind && l.copy == r.Name })
		if r.Env && i >= 0 {
			read = append(read, fmt.Sprintf("%s/%s=%s", r.Kind, r.Name, all[i].digest))
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

// rolls tells whether a resource asks for new Pods when what they read changes.
func rolls(resource metav1.Object) bool {
	return resource.GetAnnotations()[v1alpha1.RollAnnotation] == "true"
}

// problemOf says why something is not sent, and how that is called.
func problemOf(l luggage, namespace string) (reason, why string) {
	switch {
	case !l.found:
		return v1alpha1.ReasonDependencyMissing, fmt.Sprintf("%s %s does not exist in namespace %s", l.Kind, l.Name, namespace)
	case l.kept != "":
		return v1alpha1.ReasonNeverSent, fmt.Sprintf("%s %s %s", l.Kind, l.Name, l.kept)
	}
	return "", ""
}
