package webhooks

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type jsonPatchOperation = jsonpatch.Operation

// objects reads the object of a request and the one it replaces, which is nil
// on create. They are read as they are, so that no field is lost.
func objects(req admission.Request) (object, old *unstructured.Unstructured, err error) {
	object = &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(req.Object.Raw); err != nil {
		return nil, nil, fmt.Errorf("reading the object: %w", err)
	}
	if len(req.OldObject.Raw) > 0 {
		old = &unstructured.Unstructured{}
		if err := old.UnmarshalJSON(req.OldObject.Raw); err != nil {
			return nil, nil, fmt.Errorf("reading the old object: %w", err)
		}
	}
	return object, old, nil
}

func gvk(req admission.Request) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind}
}
