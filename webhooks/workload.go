package webhooks

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/policies"
)

var schemaNamespace = corev1.SchemeGroupVersion.WithKind("Namespace")

// workload validates Portico's own kinds.
func workload(decoder admission.Decoder) handler {
	return func(_ context.Context, req admission.Request) (admission.Response, error) {
		if subresource(req) {
			return admission.Allowed(""), nil
		}
		var errs field.ErrorList
		var err error
		switch req.Kind.Kind {
		case "KubernetesApplication":
			errs, err = judge(decoder, req, policies.ValidateApplication)
		case "KubernetesApplicationResource":
			errs, err = judge(decoder, req, policies.ValidateResource)
		case "KubernetesTarget":
			errs, err = judge(decoder, req, policies.ValidateTarget)
		}
		if err != nil {
			return admission.Response{}, fmt.Errorf("reading the %s: %w", req.Kind.Kind, err)
		}
		return verdict(req, errs), nil
	}
}

// judge asks what is wrong with an object, unless it is being deleted: a
// finalizer may always go.
func judge[T any, P interface {
	*T
	client.Object
}](decoder admission.Decoder, req admission.Request, problems func(now, old P) field.ErrorList) (field.ErrorList, error) {
	now, old := P(new(T)), P(nil)
	if err := decoder.DecodeRaw(req.Object, now); err != nil {
		return nil, err
	}
	if now.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if len(req.OldObject.Raw) > 0 {
		old = P(new(T))
		if err := decoder.DecodeRaw(req.OldObject, old); err != nil {
			return nil, err
		}
	}
	return problems(now, old), nil
}
