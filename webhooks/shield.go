package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/kinds/fields"
)

// shield keeps the status that Portico wrote. It replaces the status that another
// writer sends by the stored one, so that the write changes nothing.
func shield(identity string) handler {
	return func(_ context.Context, req admission.Request) (admission.Response, error) {
		if req.SubResource != "status" || req.UserInfo.Username == identity {
			return admission.Allowed(""), nil
		}
		object, old, err := decodeObjects(req)
		if err != nil {
			return admission.Response{}, err
		}
		// The stored object decides: a status write cannot remove the label.
		if old == nil || !isStatusManaged(old) {
			return admission.Allowed(""), nil
		}
		return allowedWithPatch(fields.RestoreManagedFields(fields.Replace(object, old, "status"), object, old), "shielded"), nil
	}
}

// isStatusManaged tells whether Portico writes the status of an object.
func isStatusManaged(object *unstructured.Unstructured) bool {
	kind, known := kinds.For(object.GroupVersionKind())
	switch {
	case !known:
		return false
	case kind == (kinds.ReplicaSet{}) && !kinds.IsRemote(object): // of a Deployment
		return kinds.IsHeldReplicaSet(object)
	}
	return kinds.IsRemote(object) && kind.Held(object)
}
