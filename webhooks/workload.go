package webhooks

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
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
			var app v1alpha2.KubernetesApplication
			if err = decoder.DecodeRaw(req.Object, &app); err == nil && live(&app) {
				errs = policies.ValidateApplication(&app)
			}
		case "KubernetesApplicationResource":
			var resource v1alpha1.KubernetesApplicationResource
			var old *v1alpha1.KubernetesApplicationResource
			if !created(req) {
				old = &v1alpha1.KubernetesApplicationResource{}
				if err = decoder.DecodeRaw(req.OldObject, old); err != nil {
					break
				}
			}
			if err = decoder.DecodeRaw(req.Object, &resource); err == nil && live(&resource) {
				errs = policies.ValidateResource(&resource, old)
			}
		case "KubernetesTarget":
			var target v1alpha1.KubernetesTarget
			if err = decoder.DecodeRaw(req.Object, &target); err == nil && live(&target) {
				errs = policies.ValidateTarget(&target)
			}
		}
		if err != nil {
			return admission.Response{}, fmt.Errorf("reading the %s: %w", req.Kind.Kind, err)
		}
		return verdict(req, errs), nil
	}
}

// live tells an object that is not being deleted; a finalizer may always go.
func live(object client.Object) bool { return object.GetDeletionTimestamp() == nil }
