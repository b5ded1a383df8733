package policies

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-io/portico/api/workload/v1alpha1"
)

// FieldOwnersOf returns the managers of an object's fields, from its managed fields. A
// path that contains a field with the name of a secret ends at that field.
func FieldOwnersOf(managed []metav1.ManagedFieldsEntry) ([]v1alpha1.FieldOwner, error) {
	sets := map[string]*fieldpath.Set{}
	for _, entry := range managed {
		if entry.FieldsV1 == nil {
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			continue // this library does not support the format
		}
		if sets[entry.Manager] == nil {
			sets[entry.Manager] = &fieldpath.Set{}
		}
		for path := range fields.All() {
			sets[entry.Manager].Insert(truncateAtSecret(path).Copy())
		}
	}
	var out []v1alpha1.FieldOwner
	for _, manager := range slices.Sorted(maps.Keys(sets)) {
		data, err := sets[manager].ToJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding the fields of manager %s: %w", manager, err)
		}
		out = append(out, v1alpha1.FieldOwner{Manager: manager, Fields: apiextensionsv1.JSON{Raw: data}})
	}
	return out, nil
}

func truncateAtSecret(path fieldpath.Path) fieldpath.Path {
	for i, element := range path {
		if element.FieldName != nil && isSecretName(*element.FieldName) {
			return path[:i+1]
		}
	}
	return path
}
