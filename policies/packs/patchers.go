package packs

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kustomize/api/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/resourcepacks/v1alpha1"
	workloadv1alpha1 "github.com/portico-io/portico/api/workload/v1alpha1"
)

// KustomizationPatcher changes the Kustomization of an instance before kustomize runs.
type KustomizationPatcher interface {
	PatchKustomization(instance *unstructured.Unstructured, k *types.Kustomization) error
}

// KustomizationPatcherFunc is a function that is a KustomizationPatcher.
type KustomizationPatcherFunc func(instance *unstructured.Unstructured, k *types.Kustomization) error

// PatchKustomization calls the function.
func (f KustomizationPatcherFunc) PatchKustomization(instance *unstructured.Unstructured, k *types.Kustomization) error {
	return f(instance, k)
}

// ChildResourcePatcher changes the resources of an instance after kustomize has run.
type ChildResourcePatcher interface {
	PatchChildResources(instance *unstructured.Unstructured, children []*unstructured.Unstructured) error
}

// ChildResourcePatcherFunc is a function that is a ChildResourcePatcher.
type ChildResourcePatcherFunc func(instance *unstructured.Unstructured, children []*unstructured.Unstructured) error

// PatchChildResources calls the function.
func (f ChildResourcePatcherFunc) PatchChildResources(instance *unstructured.Unstructured, children []*unstructured.Unstructured) error {
	return f(instance, children)
}

// builtInKustomizationPatchers run before those of the caller.
var builtInKustomizationPatchers = []KustomizationPatcher{
	KustomizationPatcherFunc(NamePrefixer), KustomizationPatcherFunc(VariantFiller), KustomizationPatcherFunc(Labeler),
}

// builtInChildResourcePatchers run before those of the caller.
var builtInChildResourcePatchers = []ChildResourcePatcher{
	ChildResourcePatcherFunc(NamespacePatcher), ChildResourcePatcherFunc(OwnerReferencePatcher),
	ChildResourcePatcherFunc(LabelPatcher), ChildResourcePatcherFunc(DefaultClassPatcher),
}

// NamePrefixer puts the name of the instance before the names of its resources.
func NamePrefixer(instance *unstructured.Unstructured, k *types.Kustomization) error {
	k.NamePrefix = instance.GetName() + "-" + k.NamePrefix
	return nil
}

// VariantFiller fills the name of the instance into the objref of each var of its kind.
func VariantFiller(instance *unstructured.Unstructured, k *types.Kustomization) error {
	for i := range k.Vars {
		if v := &k.Vars[i]; refersTo(*v, instance) {
			v.ObjRef.APIVersion = instance.GetAPIVersion()
			v.ObjRef.Name = instance.GetName()
			v.ObjRef.Namespace = instance.GetNamespace()
		}
	}
	return nil
}

// refersTo tells whether the objref of a var has the kind of the instance.
func refersTo(v types.Var, instance *unstructured.Unstructured) bool {
	if v.ObjRef.Kind != instance.GetKind() {
		return false
	}
	gvk := v.ObjRef.GVK()
	return gvk.Group == "" && v.ObjRef.APIVersion == "" || gvk.Group == instance.GroupVersionKind().Group
}

// NameLabel is the label of each resource with the name of its instance.
func NameLabel(instance *unstructured.Unstructured) string {
	return instance.GroupVersionKind().Group + "/name"
}

// UIDLabel is the label of each resource with the UID of its instance.
func UIDLabel(instance *unstructured.Unstructured) string {
	return instance.GroupVersionKind().Group + "/uid"
}

// Labeler fills the labels with the name and the UID of the instance. The labels of the
// template go on metadata.labels alone: commonLabels also change selectors, and the
// selector of a Deployment is immutable.
func Labeler(instance *unstructured.Unstructured, k *types.Kustomization) error {
	for i := range k.Labels {
		k.Labels[i].IncludeSelectors = false
	}
	pairs := map[string]string{}
	maps.Copy(pairs, k.CommonLabels)
	pairs[NameLabel(instance)] = instance.GetName()
	pairs[UIDLabel(instance)] = string(instance.GetUID())
	k.CommonLabels = nil
	k.Labels = append(k.Labels, types.Label{Pairs: pairs})
	return nil
}

// NamespacePatcher puts the resources of an instance in its namespace.
func NamespacePatcher(instance *unstructured.Unstructured, children []*unstructured.Unstructured) error {
	namespace := instance.GetNamespace()
	if namespace == "" {
		return nil
	}
	for _, child := range children {
		if other := child.GetNamespace(); other != "" && other != namespace {
			return fmt.Errorf("%s %s is in the namespace %s, and an instance in %s cannot own it", child.GetKind(), child.GetName(), other, namespace)
		}
		if isClusterScoped(child) {
			return fmt.Errorf("%s %s has no namespace, and an instance in %s cannot own it; use the scope Cluster", child.GetKind(), child.GetName(), namespace)
		}
		child.SetNamespace(namespace)
	}
	return nil
}

// OwnerReferencePatcher makes the instance the owner of its resources.
func OwnerReferencePatcher(instance *unstructured.Unstructured, children []*unstructured.Unstructured) error {
	for _, child := range children {
		child.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: instance.GetAPIVersion(), Kind: instance.GetKind(), Name: instance.GetName(), UID: instance.GetUID(),
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}})
	}
	return nil
}

// LabelPatcher copies the labels of the instance to its resources. The schedule label
// is copied to the kinds that are sent to targets.
func LabelPatcher(instance *unstructured.Unstructured, children []*unstructured.Unstructured) error {
	for _, child := range children {
		labels := child.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		for key, value := range instance.GetLabels() {
			if _, isSent := kinds.For(child.GroupVersionKind()); key == workloadv1alpha1.ScheduleLabel && !isSent {
				continue
			}
			if key != NameLabel(instance) && key != UIDLabel(instance) {
				labels[key] = value
			}
		}
		child.SetLabels(labels)
	}
	return nil
}

// DefaultClassPatcher removes the annotation of default classes, unless the instance
// keeps it.
func DefaultClassPatcher(instance *unstructured.Unstructured, children []*unstructured.Unstructured) error {
	if instance.GetAnnotations()[v1alpha1.KeepDefaultingAnnotation] == "true" {
		return nil
	}
	for _, child := range children {
		removeAnnotation(child, v1alpha1.DefaultClassAnnotation)
	}
	return nil
}

// removeAnnotation removes an annotation, and an empty map of annotations.
func removeAnnotation(object *unstructured.Unstructured, key string) {
	annotations := object.GetAnnotations()
	delete(annotations, key)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
		return
	}
	object.SetAnnotations(annotations)
}
