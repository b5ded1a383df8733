package references

import (
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

// Class is a StorageClass, IngressClass, PriorityClass or RuntimeClass that an object names.
// Each cluster has its own, and accepts an object whose class it does not have.
type Class struct {
	Kind schema.GroupVersionKind
	Name string
	// Field is the path of the field with the name.
	Field string
}

// ClassesOf lists the classes that an object names, each once. A claim that names its
// volume needs no StorageClass.
func ClassesOf(object *unstructured.Unstructured) []Class {
	var out []Class
	add := func(kind schema.GroupVersionKind, spec map[string]any, path *field.Path, key string) {
		name, _ := spec[key].(string)
		for _, class := range out {
			if class.Kind == kind && class.Name == name {
				return
			}
		}
		if volume, _ := spec["volumeName"].(string); name != "" && volume == "" {
			out = append(out, Class{Kind: kind, Name: name, Field: path.Child(key).String()})
		}
	}
	storage := storagev1.SchemeGroupVersion.WithKind("StorageClass")
	spec, path := fields.Child(object.Object, "spec"), field.NewPath("spec")
	switch object.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"):
		add(storage, spec, path, "storageClassName")
	case networkingv1.SchemeGroupVersion.WithKind("Ingress"):
		add(networkingv1.SchemeGroupVersion.WithKind("IngressClass"), spec, path, "ingressClassName")
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet"):
		for i, claim := range fields.Items(spec["volumeClaimTemplates"]) {
			add(storage, fields.Child(claim, "spec"), path.Child("volumeClaimTemplates").Index(i).Child("spec"), "storageClassName")
		}
	}
	pod, path := PodSpec(object), PodSpecPath(object)
	add(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), pod, path, "priorityClassName")
	add(nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), pod, path, "runtimeClassName")
	for i, volume := range fields.Items(pod["volumes"]) {
		claim := fields.Child(fields.Child(volume, "ephemeral"), "volumeClaimTemplate")
		add(storage, fields.Child(claim, "spec"), path.Child("volumes").Index(i).Child("ephemeral", "volumeClaimTemplate", "spec"), "storageClassName")
	}
	return out
}
