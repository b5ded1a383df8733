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
	return natives(func(_ context.Context, q question) (admission.Response, error) {
		var patch kinds.Patch
		if namespaceOptsIn {
			patch = kinds.OptIn(q.object, q.old)
		}
		held, err := kinds.Hold(q.kind, q.object, q.old, kinds.Author(q.UserInfo.Username == identity))
		var malformed *field.Error
		if errors.As(err, &malformed) {
			return verdict(q.Request, field.ErrorList{malformed}), nil
		}
		if err != nil {
			return admission.Response{}, err
		}
		return patched(append(patch, held...), "held"), nil
	})
}
