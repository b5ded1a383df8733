package plan

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of the objects that other objects of an application wait for.
var (
	NamespaceKind      = schema.GroupKind{Kind: "Namespace"}
	ServiceAccountKind = schema.GroupKind{Kind: "ServiceAccount"}
	DefinitionKind     = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
)
