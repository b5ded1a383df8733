package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	admissionv1 "k8s.io/api/admission/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// handler returns the response to a request, or an error if it cannot decide.
type handler func(ctx context.Context, req admission.Request) (admission.Response, error)

// failurePolicy is the response to a request when the handler fails. It is the same as
// the webhook's failurePolicy in its configuration, which applies only to calls without
// a response: a recovered panic and admission.Errored are responses.
type failurePolicy bool

const (
	deny  failurePolicy = false
	allow failurePolicy = true
)

// waitForPolicies delays requests until the policies are loaded. A replica that has just
// started receives requests before it is ready.
func waitForPolicies(policies interface{ Loaded() <-chan struct{} }, handle handler) handler {
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		select {
		case <-policies.Loaded():
			return handle(ctx, req)
		case <-ctx.Done():
			return admission.Response{}, errors.New("the policies are not loaded yet; try again")
		}
	}
}

// failureHandler calls a handler, and applies the failure policy when it fails.
type failureHandler struct {
	path          string
	handle        handler
	failurePolicy failurePolicy
}

// deletionPaths are the paths of the webhooks that handle deletions.
var deletionPaths = map[string]bool{InUsePath: true, InUseSecretPath: true, NamespacePath: true, PolicyPath: true}

// Handle implements admission.Handler.
func (f failureHandler) Handle(ctx context.Context, req admission.Request) (resp admission.Response) {
	log := logf.FromContext(ctx)
	defer func() {
		if cause := recover(); cause != nil {
			log.Error(fmt.Errorf("panic: %v", cause), "Recovered from a panic in a webhook", "path", f.path, "stack", string(debug.Stack()))
			resp = f.failed(fmt.Errorf("%s: internal error", f.path))
		}
	}()
	if req.UID == "" {
		return admission.Errored(http.StatusBadRequest, errors.New("the AdmissionReview has no request with a UID"))
	}
	if req.Operation == admissionv1.Delete && !deletionPaths[f.path] || req.Operation == admissionv1.Connect {
		return admission.Allowed("") // the webhook configuration selects too much
	}
	resp, err := f.handle(ctx, req)
	if status := tooManyRequests(err); status != nil && f.failurePolicy == deny {
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status.ErrStatus}}
	}
	if err != nil {
		log.Error(err, "Webhook failed", "path", f.path)
		return f.failed(err)
	}
	f.log(ctx, resp)
	return resp
}

// log logs a decision. A response without a patch, a warning and an annotation is logged
// as a step.
func (f failureHandler) log(ctx context.Context, resp admission.Response) {
	log := logf.FromContext(ctx).WithValues("path", f.path)
	switch {
	case !resp.Allowed:
		reason := ""
		if resp.Result != nil {
			reason = resp.Result.Message
		}
		log.V(2).Info("Denied an admission request", "reason", reason)
	case len(resp.Patches) > 0 || len(resp.AuditAnnotations) > 0 || len(resp.Warnings) > 0:
		log.V(2).Info("Allowed an admission request", "annotations", resp.AuditAnnotations, "warnings", resp.Warnings)
	default:
		log.V(4).Info("Allowed an admission request without a change")
	}
}

func (f failureHandler) failed(err error) admission.Response {
	if f.failurePolicy == allow {
		return admission.Allowed("").WithWarnings(fmt.Sprintf("Portico could not check this request, and allowed it: %v", err))
	}
	return admission.Errored(http.StatusInternalServerError, err)
}
