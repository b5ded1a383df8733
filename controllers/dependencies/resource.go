package dependencies

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// resourceFor returns the resource that sends an object to a target.
func (c *Controller) resourceFor(ctx context.Context, native client.Object, on placement) (*v1alpha1.KubernetesApplicationResource, error) {
	name := kinds.DependencyName(c.kind.name, native.GetName(), on.target)
	template, needed, err := c.kind.project(ctx, c.hub, native, on)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(template.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	resource := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: native.GetNamespace(),
			Name:      name,
			Labels: map[string]string{
				v1alpha1.FrontDoorLabel:  v1alpha1.FrontDoor,
				v1alpha1.DependencyLabel: v1alpha1.DependencyShared,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(native, kinds.DependencyKind(c.kind.name))},
		},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{
			Template:     runtime.RawExtension{Raw: raw},
			TargetRef:    &v1alpha1.TargetReference{Name: on.target},
			Dependencies: needed,
		},
	}
	for _, key := range propagatedAnnotations {
		if value, ok := native.GetAnnotations()[key]; ok {
			metav1.SetMetaDataAnnotation(&resource.ObjectMeta, key, value)
		}
	}
	if _, own := resource.Annotations[v1alpha1.AdoptAnnotation]; !own && slices.ContainsFunc(on.dependents, adopts) {
		metav1.SetMetaDataAnnotation(&resource.ObjectMeta, v1alpha1.AdoptAnnotation, string(v1alpha1.AdoptIfUnowned))
	}
	controllerutil.AddFinalizer(resource, v1alpha1.PropagationFinalizer)
	return resource, nil
}

// adopts tells whether a resource adopts objects without an owner. It then adopts its
// dependencies as well.
func adopts(resource v1alpha1.KubernetesApplicationResource) bool {
	return policies.AdoptionPolicyOf(&resource) != v1alpha1.AdoptNever
}

// propagatedAnnotations are the annotations of an object that its resources get.
var propagatedAnnotations = []string{v1alpha1.ForceAnnotation, v1alpha1.AdoptAnnotation, v1alpha1.DeletionAnnotation, v1alpha1.DriftAnnotation}

// updateResource updates a stored resource with the desired one. The deletion policy
// Orphan stays: propagation sets it when an object that needs the dependency is orphaned.
func updateResource(current, desired *v1alpha1.KubernetesApplicationResource) {
	if current.Labels == nil { // another writer removed them
		current.Labels = map[string]string{}
	}
	maps.Copy(current.Labels, desired.Labels)
	delete(current.Annotations, v1alpha1.LeftAnnotation)
	for _, key := range propagatedAnnotations {
		value, set := desired.Annotations[key]
		switch {
		case set:
			metav1.SetMetaDataAnnotation(&current.ObjectMeta, key, value)
		case key != v1alpha1.DeletionAnnotation:
			delete(current.Annotations, key)
		}
	}
	if !equality.Semantic.DeepEqual(current.Spec.Dependencies, desired.Spec.Dependencies) {
		current.Spec.Dependencies = desired.Spec.Dependencies
	}
	if !fields.EqualJSON(current.Spec.Template.Raw, desired.Spec.Template.Raw) {
		current.Spec.Template = desired.Spec.Template
	}
}
