package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
)

// shield keeps the status that Portico wrote: another writer's becomes the one
// that was there, which is no write at all.
func shield(identity string) handler {
	return func(_ context.Context, req admission.Request) (admission.Response, error) {
		if req.SubResource != "status" || req.UserInfo.Username == identity {
			return admission.Allowed(""), nil
		}
		object, old, err := objects(req)
		if err != nil {
			return admission.Response{}, err
		}
		// What is stored decides: a status write cannot take the label off.
		if old == nil || !shielded(old) {
			return admission.Allowed(""), nil
		}
		return patched(kinds.Settle(kinds.Replace(object, old, "status"), object, old), "shielded"), nil
	}
}

// shielded tells whether an object's status is Portico's to write.
func shielded(object *unstructured.Unstructured) bool {
	if object.GroupVersionKind() == kinds.ReplicaSetKind {
		return kinds.IsShadow(object)
	}
	kind, known := kinds.For(object.GroupVersionKind())
	return known && kinds.IsRemote(object) && kind.Held(object)
}
