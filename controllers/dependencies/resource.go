package dependencies

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
)

// resourceFor returns the resource that sends a ServiceAccount to a target. Pods start
// without the image pull secrets of their ServiceAccount, so these are optional.
func resourceFor(account *corev1.ServiceAccount, target string) (*v1alpha1.KubernetesApplicationResource, error) {
	template := kinds.ProjectServiceAccount(account)
	name := kinds.DependencyName(kinds.ServiceAccountKind, account.Name, target)
	var secrets []v1alpha1.Dependency
	kinds.RenamePullSecrets(template, func(secret string) string {
		if !containsSecret(secrets, secret) {
			secrets = append(secrets, v1alpha1.Dependency{Kind: kinds.SecretKind, Name: secret, Optional: true})
		}
		return kinds.CopyName(name, secret)
	})
	raw, err := json.Marshal(template.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	resource := &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace,
			Name:      name,
			Labels: map[string]string{
				v1alpha1.FrontDoorLabel:  v1alpha1.FrontDoor,
				v1alpha1.DependencyLabel: v1alpha1.DependencyShared,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(account, corev1.SchemeGroupVersion.WithKind(kinds.ServiceAccountKind))},
		},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{
			Template:     runtime.RawExtension{Raw: raw},
			TargetRef:    &v1alpha1.TargetReference{Name: target},
			Dependencies: secrets,
		},
	}
	for _, key := range propagatedAnnotations {
		if value, ok := account.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&resource.ObjectMeta, key, value)
		}
	}
	controllerutil.AddFinalizer(resource, v1alpha1.PropagationFinalizer)
	if errs := policies.ValidateResource(resource, nil); len(errs) > 0 { // no webhook validates a ServiceAccount
		return nil, errs.ToAggregate()
	}
	return resource, nil
}

func containsSecret(list []v1alpha1.Dependency, name string) bool {
	for _, d := range list {
		if d.Name == name {
			return true
		}
	}
	return false
}

// propagatedAnnotations are the annotations of a ServiceAccount that its resources get.
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
	if !kinds.EqualJSON(current.Spec.Template.Raw, desired.Spec.Template.Raw) {
		current.Spec.Template = desired.Spec.Template
	}
}
