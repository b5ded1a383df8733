package references

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-io/portico/api/kinds/fields"
)

// ClusterObject is a StorageClass, IngressClass, PriorityClass, RuntimeClass or
// PersistentVolume that an object names. Each cluster has its own, and accepts an object
// that names another one.
type ClusterObject struct {
	Kind schema.GroupVersionKind
	Name string
	// Field is the path of the field with the name.
	Field string
}

// ClusterObjectsOf lists the cluster-scoped objects that an object names, each once. A claim
// that names its volume needs no StorageClass.
func ClusterObjectsOf(object *unstructured.Unstructured) []ClusterObject {
	var out []ClusterObject
	add := func(kind schema.GroupVersionKind, spec map[string]any, path *field.Path, key string) {
		name, _ := spec[key].(string)
		known := slices.ContainsFunc(out, func(o ClusterObject) bool { return o.Kind == kind && o.Name == name })
		if name != "" && !known {
			out = append(out, ClusterObject{Kind: kind, Name: name, Field: path.Child(key).String()})
		}
	}
	addStorage := func(claim map[string]any, path *field.Path) {
		if volume, _ := claim["volumeName"].(string); volume != "" {
			add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"), claim, path, "volumeName")
			return
		}
		add(storagev1.SchemeGroupVersion.WithKind("StorageClass"), claim, path, "storageClassName")
	}
	spec, path := fields.Child(object.Object, "spec"), field.NewPath("spec")
	switch object.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"):
		addStorage(spec, path)
	case networkingv1.SchemeGroupVersion.WithKind("Ingress"):
		add(networkingv1.SchemeGroupVersion.WithKind("IngressClass"), spec, path, "ingressClassName")
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet"):
		for i, claim := range fields.Items(spec["volumeClaimTemplates"]) {
			addStorage(fields.Child(claim, "spec"), path.Child("volumeClaimTemplates").Index(i).Child("spec"))
		}
	}
	pod, path := PodSpec(object), PodSpecPath(object)
	add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), pod, path, "priorityClassName")
	add(nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), pod, path, "runtimeClassName")
	for i, volume := range fields.Items(pod["volumes"]) {
		claim := fields.Child(fields.Child(volume, "ephemeral"), "volumeClaimTemplate")
		addStorage(fields.Child(claim, "spec"), path.Child("volumes").Index(i).Child("ephemeral", "volumeClaimTemplate", "spec"))
	}
	return out
}
