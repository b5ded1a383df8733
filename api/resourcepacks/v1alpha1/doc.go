// Package v1alpha1 holds the ResourcePack. kubectl portico pack reads it from a folder.
// No cluster serves it yet.
//
// +kubebuilder:object:generate=true
// +groupName=resourcepacks.crossplane.io
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// Group of the ResourcePack.
const Group = "resourcepacks.crossplane.io"

// GroupVersion is resourcepacks.crossplane.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// ResourcePackKind is the kind of a ResourcePack.
const ResourcePackKind = "ResourcePack"

// KeepDefaultingAnnotation on an instance of a pack, with the value "true", keeps
// DefaultClassAnnotation on its resources.
const KeepDefaultingAnnotation = Group + "/keep-defaulting-annotations"

// DefaultClassAnnotation marks the class that claims without a class use.
const DefaultClassAnnotation = "resourceclass.crossplane.io/is-default-class"
