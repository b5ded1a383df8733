package webhooks

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// verdict refuses with every problem at once, as the API server does, or allows.
func verdict(req admission.Request, errs field.ErrorList) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	name := req.Name
	if name == "" {
		name = "(generated)"
	}
	kind := schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}
	status := apierrors.NewInvalid(kind, name, errs).Status()
	resp := admission.Denied("")
	resp.Result = &status
	fields := make([]string, 0, len(errs))
	for _, err := range errs {
		fields = append(fields, err.Field)
	}
	resp.AuditAnnotations = map[string]string{"decision": "refused", "fields": strings.Join(fields, ",")}
	return resp
}
