// Package groups distinguishes the API groups of Kubernetes and of Portico from those of
// custom kinds.
package groups

import (
	"slices"
	"strings"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// builtIn are the groups of Kubernetes whose names have a dot.
var builtIn = []string{
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "custom.metrics.k8s.io", "discovery.k8s.io",
	"events.k8s.io", "external.metrics.k8s.io", "flowcontrol.apiserver.k8s.io", "imagepolicy.k8s.io",
	"internal.apiserver.k8s.io", "metrics.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io",
	"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// IsBuiltIn tells whether a group is one of Kubernetes itself. The other groups are
// those of CustomResourceDefinitions and of additional API servers.
func IsBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || slices.Contains(builtIn, group)
}

// portico are the groups of Portico's own kinds, which remain on the hub.
var portico = []string{v1alpha1.Group, "policy." + v1alpha1.Group, "kubernetes.crossplane.io", "compute.crossplane.io"}

// IsPortico tells whether a group is one of Portico's own kinds.
func IsPortico(group string) bool { return slices.Contains(portico, group) }

// NotCustom returns the groups with a dot in which no PropagationKind may name a kind.
func NotCustom() []string { return slices.Concat(builtIn, portico) }
