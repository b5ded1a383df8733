package kinds

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-io/portico/api/kinds/fields"
	"github.com/portico-io/portico/api/kinds/observed"
)

// Custom is a kind that a PropagationKind adds to the registry. The hub runs what its own
// controllers make of an object.
type Custom struct {
	// Served is the kind in the version in which the hub serves it.
	Served schema.GroupVersionKind
	// Plural is the name of the kind in the API.
	Plural string
	// HasStatus is true if the kind has the subresource status.
	HasStatus bool
	// StatusPaths are the fields of the status that the hub shows; empty for all.
	StatusPaths [][]string
	// Readiness is an expression in CEL, or "".
	Readiness string
}

var _ Kind = &Custom{}

// GroupVersionKind implements Kind.
func (c *Custom) GroupVersionKind() schema.GroupVersionKind { return c.Served }

// Resource implements Kind.
func (c *Custom) Resource() string { return c.Plural }

// Properties implements Kind.
func (c *Custom) Properties() Properties {
	return Properties{HasStatus: c.HasStatus, WithoutController: true, Sent: "the spec you wrote", NotSent: "an object that has a controller"}
}

// Hold implements Kind.
func (c *Custom) Hold(_, _ *unstructured.Unstructured, _ Author) (fields.Patch, error) {
	return nil, nil
}

// Release implements Kind.
func (c *Custom) Release(*unstructured.Unstructured) fields.Patch { return nil }

// Held implements Kind.
func (c *Custom) Held(object *unstructured.Unstructured) bool { return IsRemote(object) }

func (c *Custom) removeHubFields(*unstructured.Unstructured, Intent) {}

// reportsObservedGeneration implements Kind. Some objects do, so the generation of the hub is
// sent with all.
func (c *Custom) reportsObservedGeneration() bool { return true }

// Reflect implements Kind. Without a status on the target the object keeps the one that the
// API server gave it, which may have required fields.
func (c *Custom) Reflect(native *unstructured.Unstructured, seen Observation) map[string]any {
	if seen.Status == nil {
		status := statusWithoutProblems(native)
		appendProblems(status, seen.Problems)
		return status
	}
	remote := statusWithoutProblems(&unstructured.Unstructured{Object: map[string]any{"status": seen.Status}})
	status := remote
	if len(c.StatusPaths) > 0 {
		status = map[string]any{}
		for _, path := range c.StatusPaths {
			if value, found, _ := unstructured.NestedFieldCopy(remote, path...); found {
				_ = unstructured.SetNestedField(status, value, path...) // a field of an object is no path into a list
			}
		}
	}
	if newest, reported := observed.Newest(seen.Status); reported {
		onHub := min(seen.HubGeneration, native.GetGeneration())
		observed.Replace(status, func(generation int64) int64 { return max(0, onHub-(newest-generation)) })
	}
	appendProblems(status, seen.Problems)
	return status
}

// custom has the kinds of the PropagationKinds. A snapshot is never changed.
var custom atomic.Pointer[map[schema.GroupKind]*Custom]

// ReplaceCustom replaces the kinds that PropagationKinds added to the registry.
func ReplaceCustom(all []*Custom) {
	snapshot := make(map[schema.GroupKind]*Custom, len(all))
	for _, c := range all {
		snapshot[c.Served.GroupKind()] = c
	}
	custom.Store(&snapshot)
}

// CustomKinds returns the kinds that PropagationKinds added to the registry, by name.
func CustomKinds() []*Custom {
	snapshot := custom.Load()
	if snapshot == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(*snapshot), func(a, b *Custom) int {
		return strings.Compare(a.Served.GroupKind().String(), b.Served.GroupKind().String())
	})
}

// customFor returns the custom kind of an object, in the version of the object: the API
// server converts an object to the served version when it is read.
func customFor(gvk schema.GroupVersionKind) (*Custom, bool) {
	snapshot := custom.Load()
	if snapshot == nil {
		return nil, false
	}
	c, known := (*snapshot)[gvk.GroupKind()]
	if !known || c.Served.Version == gvk.Version {
		return c, known
	}
	converted := *c
	converted.Served.Version = gvk.Version
	return &converted, true
}

func isCustom(k Kind) bool {
	_, ok := k.(*Custom)
	return ok
}

// ReadinessOf returns the expression in CEL that says when an object of a kind is ready; ""
// for the rule of the kind.
func ReadinessOf(k Kind) string {
	if c, ok := k.(*Custom); ok {
		return c.Readiness
	}
	return ""
}

// IsRegistered tells whether a kind is in the registry, in any version.
func IsRegistered(kind schema.GroupKind) bool {
	if _, known := customFor(kind.WithVersion("")); known {
		return true
	}
	return slices.ContainsFunc(All, func(k Kind) bool { return k.GroupVersionKind().GroupKind() == kind })
}
