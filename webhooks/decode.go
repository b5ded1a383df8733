package webhooks

import (
	"context"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
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

// question is a request about a native object that is not being deleted.
type question struct {
	admission.Request
	kind        kinds.Kind
	object, old *unstructured.Unstructured
	// content is what is in a Secret or ConfigMap, and before what was; the
	// objects are without it.
	content, before map[string]any
}

// natives answers requests about the native kinds. Whatever else comes, a
// subresource or an object that is being deleted, passes.
func natives(answer func(ctx context.Context, q question) (admission.Response, error)) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		kind, known := kinds.For(gvk(req))
		if !known || subresource(req) {
			return admission.Allowed(""), nil
		}
		object, old, err := objects(req)
		if err != nil {
			return admission.Response{}, err
		}
		if object.GetDeletionTimestamp() != nil {
			return admission.Allowed(""), nil
		}
		content, before := kinds.Strip(object), kinds.Strip(old)
		return answer(ctx, question{Request: req, kind: kind, object: object, old: old, content: content, before: before})
	}
}

func gvk(req admission.Request) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind}
}
