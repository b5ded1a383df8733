// Package conversion turns a KubernetesApplication of one version into the other,
// with no loss either way: they differ in what they call a target, and in nothing
// else. v1alpha2 is the one that is stored, and that the rest of Portico knows.
//
// It renames fields and leaves their values as they were written. An empty
// selector with an empty matchLabels stays one: an object that is applied in one
// version and then in the other has not changed.
package conversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// renamed are the fields of the spec, as v1alpha1 and v1alpha2 name them.
var renamed = [][2]string{{"clusterSelector", "targetSelector"}, {"clusterRef", "targetRef"}}

// Convert returns an application in another version. The two share nothing.
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
		return to, nil // it has none
	}
	for _, field := range renamed {
		delete(spec, field[now]) // the other version does not have it
		if value, set := spec[field[old]]; set {
			delete(spec, field[old])
			spec[field[now]] = value
		}
	}
	return to, nil
}
