package webhooks

import (
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/policies"
)

// decisionAnnotation is the audit annotation with the result of a webhook.
const decisionAnnotation = "decision"

// validationResponse denies a request with all field errors at once, as the API
// server does. Without errors it allows the request.
func validationResponse(req admission.Request, errs field.ErrorList) admission.Response {
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
	resp.AuditAnnotations = map[string]string{decisionAnnotation: "refused", "fields": strings.Join(fields, ",")}
	return resp
}

// deniedInUse denies the deletion of an object that is in use.
func deniedInUse(message, decision string) admission.Response {
	resp := admission.Denied(message)
	resp.AuditAnnotations = map[string]string{decisionAnnotation: decision}
	return resp
}

// allowedWithPatch allows a request with changes, and notes them in the audit log.
func allowedWithPatch(operations []jsonpatch.Operation, decision string) admission.Response {
	resp := admission.Allowed("")
	if len(operations) == 0 {
		return resp
	}
	resp.Patches = operations
	resp.AuditAnnotations = map[string]string{decisionAnnotation: decision}
	return resp
}

// maxWarning is the length to which an API server cuts warnings.
const maxWarning = 256

func shorten(text string) string { return policies.Shorten(text, maxWarning) }
