package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Render builds a kustomization, as `kubectl kustomize` does.
func Render(dir string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // the order of the kustomization; Apply orders the objects
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		// Only decoded JSON has the types of numbers that unstructured objects need.
		data, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", dir, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("building %s: %w", dir, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
