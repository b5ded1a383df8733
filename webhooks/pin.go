package webhooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
)

// pin keeps the ReplicaSets of held Deployments without replicas.
func pin(_ context.Context, req admission.Request) (admission.Response, error) {
	if gvk(req) != kinds.ReplicaSetKind || subresource(req) {
		return admission.Allowed(""), nil
	}
	object, old, err := objects(req)
	if err != nil {
		return admission.Response{}, err
	}
	return patched(kinds.Settle(kinds.Pin(object), object, old), "pinned"), nil
}
