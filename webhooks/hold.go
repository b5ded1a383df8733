package webhooks

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/fields"
)

// hold keeps the hub's controllers from running remote objects. In a namespace that
// opts in, it first labels the objects.
func hold(identity string, namespaceOptsIn bool) handler {
	return nativeHandler(func(_ context.Context, q nativeRequest) (admission.Response, error) {
		var patch fields.Patch
		if namespaceOptsIn {
			patch = kinds.OptIn(q.object, q.old)
		}
		held, err := kinds.Hold(q.kind, q.object, q.old, kinds.Author(q.UserInfo.Username == identity))
		var malformed *field.Error
		if errors.As(err, &malformed) {
			return validationResponse(q.Request, field.ErrorList{malformed}), nil
		}
		if err != nil {
			return admission.Response{}, err
		}
		return allowedWithPatch(fields.RestoreManagedFields(append(patch, held...), q.object, q.old), "held"), nil
	})
}
