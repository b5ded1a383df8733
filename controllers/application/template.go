package application

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
)

// resourceFromTemplate returns the resource that a template makes. It gets the
// application's target, if there is one, with the finalizer that keeps the resource
// until its object is deleted from the target.
func resourceFromTemplate(app *v1alpha2.KubernetesApplication, template v1alpha2.ResourceTemplate) *v1alpha1.KubernetesApplicationResource {
	resource := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       app.Namespace,
			Name:            template.Metadata.Name,
			Labels:          maps.Clone(template.Metadata.Labels),
			Annotations:     maps.Clone(template.Metadata.Annotations),
			OwnerReferences: []metav1.OwnerReference{*controllerRef(app)},
		},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{
			Template:  template.Spec.Template,
			Secrets:   template.Spec.Secrets,
			Readiness: template.Spec.Readiness,
			Observe:   template.Spec.Observe,
		},
	}
	metav1.SetMetaDataAnnotation(&resource.ObjectMeta, v1alpha1.TemplatedAnnotation, templatedKeys(template.Metadata))
	metav1.SetMetaDataLabel(&resource.ObjectMeta, v1alpha1.ApplicationLabel, app.Name)
	if target := app.Spec.TargetRef; target != nil {
		resource.Spec.TargetRef = target.DeepCopy()
		controllerutil.AddFinalizer(resource, v1alpha1.PropagationFinalizer)
	}
	return resource.DeepCopy() // the copy shares no memory with the template
}

func controllerRef(app *v1alpha2.KubernetesApplication) *metav1.OwnerReference {
	return metav1.NewControllerRef(app, v1alpha2.GroupVersion.WithKind("KubernetesApplication"))
}

const labelKey, annotationKey = "label:", "annotation:"

// templatedKeys lists the labels and annotations of a template.
func templatedKeys(meta v1alpha2.TemplateMeta) string {
	var keys []string
	for key := range meta.Labels {
		keys = append(keys, labelKey+key)
	}
	for key := range meta.Annotations {
		keys = append(keys, annotationKey+key)
	}
	slices.Sort(keys)
	return strings.Join(keys, ",")
}

// updateFromTemplate updates a stored resource with the one that its template makes
// now. Labels and annotations of other writers stay, and so does the target.
func updateFromTemplate(current, desired *v1alpha1.KubernetesApplicationResource) {
	for _, key := range strings.Split(current.Annotations[v1alpha1.TemplatedAnnotation], ",") {
		if label, ok := strings.CutPrefix(key, labelKey); ok {
			delete(current.Labels, label)
		} else if annotation, ok := strings.CutPrefix(key, annotationKey); ok {
			delete(current.Annotations, annotation)
		}
	}
	delete(current.Annotations, v1alpha1.TemplatedAnnotation)
	for key, value := range desired.Labels {
		metav1.SetMetaDataLabel(&current.ObjectMeta, key, value)
	}
	for key, value := range desired.Annotations {
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, key, value)
	}
	if !fields.EqualJSON(current.Spec.Template.Raw, desired.Spec.Template.Raw) {
		current.Spec.Template = desired.Spec.Template
	}
	current.Spec.Secrets, current.Spec.Readiness = desired.Spec.Secrets, desired.Spec.Readiness
	current.Spec.Observe = desired.Spec.Observe
	ref := desired.OwnerReferences[0]
	switch i := slices.IndexFunc(current.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller }); {
	case i < 0:
		current.OwnerReferences = append(current.OwnerReferences, ref)
	case current.OwnerReferences[i].UID != ref.UID:
		current.OwnerReferences[i] = ref
	}
}

// madeBy tells whether an application made a resource. An application that was restored
// from a backup has another UID and keeps its resources, also if the backup left out
// owner references.
func madeBy(resource metav1.Object, app *v1alpha2.KubernetesApplication) bool {
	ref := metav1.GetControllerOf(resource)
	if ref == nil {
		_, templated := resource.GetAnnotations()[v1alpha1.TemplatedAnnotation]
		return templated && resource.GetLabels()[v1alpha1.ApplicationLabel] == app.Name
	}
	return isApplication(ref) && ref.Name == app.Name
}

func isApplication(ref *metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && version.Group == v1alpha1.Group && ref.Kind == "KubernetesApplication"
}

// describeOwner describes, for users, the object that controls a resource.
func describeOwner(resource metav1.Object) string {
	ref := metav1.GetControllerOf(resource)
	if ref == nil {
		return "was created by a user; an application does not take it over"
	}
	return fmt.Sprintf("belongs to %s %s", ref.Kind, ref.Name)
}

// creationRank orders templates: namespaces are first, then definitions of kinds, then
// all other objects.
func creationRank(template v1alpha2.ResourceTemplate) int {
	object := policies.TemplateObject(template.Spec.Template)
	if object == nil {
		return 2
	}
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return 0
	case schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
		return 1
	}
	return 2
}

// creationWaves returns the indexes of an application's templates in the order of
// creation. The resources of one wave are created at the same time.
func creationWaves(templates []v1alpha2.ResourceTemplate) [][]int {
	byRank := make([][]int, 3)
	for i := range templates {
		byRank[creationRank(templates[i])] = append(byRank[creationRank(templates[i])], i)
	}
	return byRank
}
