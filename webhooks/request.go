package webhooks

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
)

// decodeObjects decodes the object of a request and the object that it replaces,
// which is nil on create. No field is lost, because they are not typed.
func decodeObjects(req admission.Request) (object, old *unstructured.Unstructured, err error) {
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

// deletedObject decodes the metadata of the object that a request deletes. A
// request to delete a collection, such as that of the namespace controller, has no
// name of its own.
func deletedObject(req admission.Request) (*metav1.PartialObjectMetadata, error) {
	old := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
		return nil, fmt.Errorf("reading the object that is being deleted: %w", err)
	}
	return old, nil
}

// nativeRequest is a request about a native object.
type nativeRequest struct {
	admission.Request
	kind        kinds.Kind
	object, old *unstructured.Unstructured
	// content and oldContent are the data of a Secret or ConfigMap. object and old
	// do not have it.
	content, oldContent map[string]any
}

// nativeHandler handles requests about native kinds. It allows requests about other
// kinds and about subresources.
func nativeHandler(handle func(ctx context.Context, q nativeRequest) (admission.Response, error)) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		kind, known := kinds.For(gvk(req))
		if !known || subresource(req) {
			return admission.Allowed(""), nil
		}
		object, old, err := decodeObjects(req)
		if err != nil {
			return admission.Response{}, err
		}
		content, oldContent := kinds.RemoveContent(object), kinds.RemoveContent(old)
		return handle(ctx, nativeRequest{Request: req, kind: kind, object: object, old: old, content: content, oldContent: oldContent})
	}
}

func gvk(req admission.Request) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind}
}

func subresource(req admission.Request) bool { return req.SubResource != "" }
