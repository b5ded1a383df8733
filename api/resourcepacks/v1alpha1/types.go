package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InstanceDefinition is the kind of the instances of a pack.
type InstanceDefinition struct {
	// group of the kind, such as gcp.resourcepacks.crossplane.io.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// version of the kind, such as v1alpha1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`

	// kind of an instance, such as MinimalGCP.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// plural is the resource name of the kind, such as minimalgcps.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Plural string `json:"plural"`

	// scope is Cluster or Namespaced. An instance in a namespace cannot own objects without
	// a namespace.
	// +optional
	// +kubebuilder:default=Cluster
	// +kubebuilder:validation:Enum=Cluster;Namespaced
	Scope apiextensionsv1.ResourceScope `json:"scope,omitempty"`

	// schema is the OpenAPI v3 schema of the spec of an instance.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Schema *apiextensionsv1.JSON `json:"schema,omitempty"`

	// additionalPrinterColumns are columns of kubectl get.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	AdditionalPrinterColumns []apiextensionsv1.CustomResourceColumnDefinition `json:"additionalPrinterColumns,omitempty"`
}

// Variable is a value of an instance that files refer to as $(NAME).
type Variable struct {
	// name of the variable, such as REGION.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_.-]*$`
	Name string `json:"name"`

	// fieldPath is the field of the instance, such as spec.region.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	FieldPath string `json:"fieldPath"`
}

// Tier is a folder of resources that some instances use instead of resources.
type Tier struct {
	// when is an expression in CEL over the instance, as self. The first tier whose
	// expression is true is used.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when"`

	// path of the folder, such as resources/large.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Path string `json:"path"`
}

// Binding copies a field of the instance to a field of a resource.
type Binding struct {
	// from is the field of the instance, such as spec.size. A binding has no effect if the
	// instance does not have the field.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`

	// to is the field of the resource, such as spec.forProvider.size.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to"`
}

// Overlay sets fields of one resource of the pack.
type Overlay struct {
	// apiVersion of the resource.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`

	// kind of the resource.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the resource in the files, without the prefix.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// bindings are the fields.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Bindings []Binding `json:"bindings"`
}

// ResourcePackSpec is a folder of manifests, and the kind of its instances.
type ResourcePackSpec struct {
	// package is the name of the pack in a registry, such as crossplane/minimal-gcp:latest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Package string `json:"package,omitempty"`

	// crd is the kind of the instances.
	// +required
	CRD InstanceDefinition `json:"crd"`

	// files are the files of the folder by path, of 1 MiB in all. The resources are in the
	// folder resources, with a kustomization.yaml in each folder.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=512
	Files map[string]string `json:"files"`

	// variables are added to the vars of resources/kustomization.yaml.tmpl.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Variables []Variable `json:"variables,omitempty"`

	// tiers are folders that some instances use instead of resources.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tiers []Tier `json:"tiers,omitempty"`

	// overlays copy fields of the instance to fields of resources.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Overlays []Overlay `json:"overlays,omitempty"`

	// serviceAccountName is the account in the namespace portico-packs that applies the
	// resources. Default: the name of the pack.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// example is an instance. The pack must render it.
	// +required
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Example *apiextensionsv1.JSON `json:"example"`
}

// ResourcePack is a folder of manifests from which one object, an instance, makes a
// whole environment.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=crossplane
type ResourcePack struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec ResourcePackSpec `json:"spec"`
}
