package webhooks

import (
	"context"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// noDecision is the decision for requests to which no policy applies.
var noDecision = &engine.Decision{}

// sentObject is an object that Portico will send to a target.
type sentObject struct {
	object, old *unstructured.Unstructured
	// path of the object in the object of the request. It is empty if the object is
	// the object of the request.
	path string
	// isNew means that the object is not yet on the target of its application.
	isNew bool
}

// policiesApply tells whether policies of a type apply to a request. They do not apply to
// Portico's own writes, which follow from requests that were evaluated.
func (o Options) policiesApply(t policyv1alpha1.PolicyType, req admission.Request) bool {
	return req.UserInfo.Username != o.Identity && o.Policies.Applies(t, req.Namespace)
}

// evaluateScheduling evaluates the scheduling policies for the objects of a request.
func (o Options) evaluateScheduling(ctx context.Context, req admission.Request, scheduling decisions.SchedulingContext, objects []sentObject) *engine.Decision {
	var each []*engine.Decision
	for _, s := range objects {
		request := policyRequest(req)
		if s.path != "" { // the request names another object
			request.Name, request.Kind = s.object.GetName(), input.Kind{}
		}
		d := o.Policies.Evaluate(ctx, callerOf(req), scheduling.Question(request, s.object, s.old))
		if target := scheduling.Application.Target; target != "" {
			d = decisions.RestrictToTarget(*d, target, s.isNew)
		}
		if s.path != "" {
			d = atPath(*d, s.path)
		}
		each = append(each, d)
	}
	return engine.Merge(each...)
}

// atPath returns a decision whose findings have the path of a part of an object.
func atPath(d engine.Decision, path string) *engine.Decision {
	d.Denied, d.Warnings = decisions.PrefixFields(path, d.Denied), decisions.PrefixFields(path, d.Warnings)
	return &d
}

// policyRequest returns the request in the input of policies.
func policyRequest(req admission.Request) input.Request {
	return input.Request{
		Operation: string(req.Operation),
		DryRun:    ptr.Deref(req.DryRun, false),
		Kind:      input.Kind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind},
		Name:      req.Name,
		Namespace: req.Namespace,
		User:      input.User{Username: req.UserInfo.Username, Groups: req.UserInfo.Groups, UID: req.UserInfo.UID},
	}
}

func callerOf(req admission.Request) decisions.Caller {
	return decisions.Caller{ID: string(req.UID), Component: "admission", Log: logf.Log.WithName("policy")}
}

// deniedByPolicies denies a request, with a line for each violation. The code is 500
// when the evaluation of a policy failed.
func deniedByPolicies(d *engine.Decision) admission.Response {
	resp := admission.Denied(strings.Join(decisions.Messages(d.Denied), "\n"))
	if decisions.EvaluationFailed(d.Denied) {
		resp.Result.Code, resp.Result.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	return resp
}

// withDecision adds the warnings and audit annotations of a decision to a response. The
// response's own annotations win.
func withDecision(resp admission.Response, d *engine.Decision) admission.Response {
	for key, value := range decisions.AuditAnnotations(d) {
		if _, exists := resp.AuditAnnotations[key]; !exists {
			if resp.AuditAnnotations == nil {
				resp.AuditAnnotations = map[string]string{}
			}
			resp.AuditAnnotations[key] = value
		}
	}
	return resp.WithWarnings(decisions.AdmissionWarnings(decisions.Messages(d.Warnings))...)
}
