package webhooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/fields"
)

// pin keeps spec.replicas of the ReplicaSets of held Deployments at 0.
func pin(_ context.Context, req admission.Request) (admission.Response, error) {
	if gvk(req) != (kinds.ReplicaSet{}).GroupVersionKind() || subresource(req) {
		return admission.Allowed(""), nil
	}
	object, old, err := decodeObjects(req)
	if err != nil {
		return admission.Response{}, err
	}
	if kinds.IsRemote(object) {
		return admission.Allowed(""), nil // it is sent itself
	}
	return allowedWithPatch(fields.RestoreManagedFields(kinds.Pin(object), object, old), "pinned"), nil
}
