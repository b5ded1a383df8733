// Package conversion converts KubernetesApplications between their versions without
// loss. The versions differ only in the names of the fields about targets. v1alpha2 is
// the stored version, and the version that the rest of Portico uses.
//
// The conversion renames fields and keeps their values. It keeps an empty selector with
// an empty matchLabels too: an object that is applied in one version and then in the
// other does not change.
package conversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// renamed lists the fields of the spec with different names, in v1alpha1 and in
// v1alpha2.
var renamed = [][2]string{{"clusterSelector", "targetSelector"}, {"clusterRef", "targetRef"}}

// Convert returns an application in another version. The copy shares no memory with the
// original.
func Convert(from *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error) {
	var old, now int
	switch is := from.GetAPIVersion(); {
	case is == v1alpha1.GroupVersion.String() && apiVersion == v1alpha2.GroupVersion.String():
		old, now = 0, 1
	case is == v1alpha2.GroupVersion.String() && apiVersion == v1alpha1.GroupVersion.String():
		old, now = 1, 0
	default:
		return nil, fmt.Errorf("a KubernetesApplication of %s cannot be converted to %s", is, apiVersion)
	}
	to := from.DeepCopy()
	to.SetAPIVersion(apiVersion)
	spec, ok := to.Object["spec"].(map[string]any)
	if !ok {
		return to, nil // the object has no spec
	}
	for _, field := range renamed {
		delete(spec, field[now]) // only one of the versions has the field
		if value, set := spec[field[old]]; set {
			delete(spec, field[old])
			spec[field[now]] = value
		}
	}
	return to, nil
}
