package plan

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds"
)

// The kinds of the objects that other objects of an application wait for.
var (
	NamespaceKind      = schema.GroupKind{Kind: "Namespace"}
	ServiceAccountKind = kinds.DependencyKind(kinds.ServiceAccountKind).GroupKind()
	RoleKind           = kinds.DependencyKind(kinds.RoleKind).GroupKind()
	RoleBindingKind    = kinds.DependencyKind(kinds.RoleBindingKind).GroupKind()
	DefinitionKind     = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
)
