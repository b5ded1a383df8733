package intake

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/groups"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// ResourceFor returns the resource of a native object. target is the target of the
// application, or nil; with it the resource gets the finalizer that keeps it until its
// object is deleted from the target. A *field.Error names the field of the object that
// cannot be projected.
func ResourceFor(kind kinds.Kind, native *unstructured.Unstructured, application string, target *v1alpha1.TargetReference) (*v1alpha1.KubernetesApplicationResource, error) {
	return resourceFor(kind, native, application, target, dependencies{}, nil)
}

// resourceFor returns the same with the dependencies that the object needs. current is the
// stored resource, or nil.
func resourceFor(kind kinds.Kind, native *unstructured.Unstructured, application string, target *v1alpha1.TargetReference, found dependencies, current *v1alpha1.KubernetesApplicationResource) (*v1alpha1.KubernetesApplicationResource, error) {
	if errs := policies.ValidateDriftAndObserve(native); len(errs) > 0 { // admission may have been unavailable
		return nil, errs.ToAggregate()
	}
	template, err := kinds.Project(kind, native)
	if err != nil {
		return nil, err
	}
	observe, _ := policies.ObservePolicyOf(native)
	name := kinds.ResourceNameOf(native.GroupVersionKind().GroupKind(), native.GetName())
	needed := dependenciesOf(template, name, found, current)
	raw, err := json.Marshal(template.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	resource := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: native.GetNamespace(),
			Name:      name,
			Labels: map[string]string{
				v1alpha1.FrontDoorLabel:   v1alpha1.FrontDoor,
				v1alpha1.ApplicationLabel: application,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(native, kind.GroupVersionKind())},
		},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: runtime.RawExtension{Raw: raw}, Dependencies: needed, Readiness: kinds.ReadinessOf(kind), Observe: observe},
	}
	for _, key := range propagatedAnnotations {
		if value, ok := native.GetAnnotations()[key]; ok {
			metav1.SetMetaDataAnnotation(&resource.ObjectMeta, key, value)
		}
	}
	if stamp, ok := template.GetAnnotations()[v1alpha1.HubGenerationAnnotation]; ok {
		metav1.SetMetaDataAnnotation(&resource.ObjectMeta, v1alpha1.HubGenerationAnnotation, stamp)
	}
	if target != nil {
		resource.Spec.TargetRef = target.DeepCopy()
		controllerutil.AddFinalizer(resource, v1alpha1.PropagationFinalizer)
	}
	return resource, nil
}

// propagatedAnnotations are the annotations of a native object that its resource gets.
var propagatedAnnotations = []string{v1alpha1.ForceAnnotation, v1alpha1.RollAnnotation, v1alpha1.AdoptAnnotation, v1alpha1.DeletionAnnotation, v1alpha1.DriftAnnotation}

// updateResource updates a stored resource with the desired one. Intake does not change
// the target.
func updateResource(current, desired *v1alpha1.KubernetesApplicationResource) {
	if current.Labels == nil { // another writer removed them
		current.Labels = map[string]string{}
	}
	maps.Copy(current.Labels, desired.Labels)
	for key, value := range desired.Annotations {
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, key, value)
	}
	for _, key := range propagatedAnnotations {
		if _, still := desired.Annotations[key]; !still {
			delete(current.Annotations, key)
		}
	}
	current.Spec.Observe = desired.Spec.Observe
	if owner := metav1.GetControllerOfNoCopy(desired); owner != nil && !groups.IsBuiltIn(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group) {
		current.Spec.Readiness = desired.Spec.Readiness
	}
	if !equality.Semantic.DeepEqual(current.Spec.Dependencies, desired.Spec.Dependencies) {
		current.Spec.Dependencies = desired.Spec.Dependencies
	}
	if !kinds.EqualExceptGeneration(current.Spec.Template.Raw, desired.Spec.Template.Raw) {
		current.Spec.Template = desired.Spec.Template
	}
}

// applicationFor returns the application that groups native objects.
func applicationFor(namespace string, member policies.Membership) *v1alpha2.KubernetesApplication {
	return &v1alpha2.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      member.Application,
			Labels:    map[string]string{v1alpha1.FrontDoorLabel: v1alpha1.FrontDoor},
		},
		Spec: v1alpha2.KubernetesApplicationSpec{
			ResourceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.ApplicationLabel: member.Application}},
			TargetSelector:   member.Selector,
			Tolerations:      member.Tolerations,
		},
	}
}
