package webhooks

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
)

// hold keeps remote objects still on the hub. In a namespace that opts in it
// labels them first.
func hold(identity string, namespaceOptsIn bool) handler {
	return func(_ context.Context, req admission.Request) (admission.Response, error) {
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
		var patch kinds.Patch
		if namespaceOptsIn {
			patch = kinds.OptIn(object, old)
		}
		held, err := kinds.Hold(kind, object, old, kinds.Author(req.UserInfo.Username == identity))
		var malformed *field.Error
		if errors.As(err, &malformed) {
			return verdict(req, field.ErrorList{malformed}), nil
		}
		if err != nil {
			return admission.Response{}, err
		}
		return patched(append(patch, held...), "held"), nil
	}
}
