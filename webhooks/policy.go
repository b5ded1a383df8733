package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/placement"
)

// undisputed is what policies say when there is nothing to ask them.
var undisputed = &engine.Decision{}

// sent is an object that shall run on a target.
type sent struct {
	object, old *unstructured.Unstructured
	// path of the object in that of the request; empty when it is all of it.
	path string
	// new says that it was not sent to its application's target before.
	new bool
}

// asked tells whether policies of a type have a say in a request. Portico's own
// writes follow from what they were asked about already.
func (o Options) asked(t policyv1alpha1.PolicyType, req admission.Request) bool {
	return req.UserInfo.Username != o.Identity && o.Policies.Asks(t, req.Namespace)
}

// decide asks policies about all that a request sends.
func (o Options) decide(ctx context.Context, req admission.Request, place decisions.Place, all []sent) *engine.Decision {
	var each []*engine.Decision
	for _, s := range all {
		request := requestOf(req)
		if s.path != "" { // what is asked about is not what the request names
			request.Name, request.Kind = s.object.GetName(), input.Kind{}
		}
		d := o.Policies.Ask(ctx, occasion(req), place.Scheduling(request, s.object, s.old))
		if at := place.Application.Target; at != "" {
			d = decisions.Joining(*d, at, s.new)
		}
		if s.path != "" {
			d = within(*d, s.path)
		}
		each = append(each, d)
	}
	return engine.Join(each...)
}

// within is a decision on a part of an object.
func within(d engine.Decision, path string) *engine.Decision {
	d.Denied, d.Warnings = decisions.Within(path, d.Denied), decisions.Within(path, d.Warnings)
	return &d
}

// requestOf is what policies see of a request.
func requestOf(req admission.Request) input.Request {
	return input.Request{
		Operation: string(req.Operation),
		DryRun:    ptr.Deref(req.DryRun, false),
		Kind:      input.Kind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind},
		Name:      req.Name,
		Namespace: req.Namespace,
		User:      input.User{Username: req.UserInfo.Username, Groups: req.UserInfo.Groups, UID: req.UserInfo.UID},
	}
}

func occasion(req admission.Request) decisions.Occasion {
	return decisions.Occasion{ID: string(req.UID), Asks: "admission", Log: logf.Log.WithName("policy")}
}

// forbidden refuses with all that policies deny, a line each.
func forbidden(d *engine.Decision) admission.Response {
	resp := admission.Denied(strings.Join(decisions.Lines(d.Denied), "\n"))
	if decisions.Failed(d.Denied) { // the fault is a policy's, and not the request's
		resp.Result.Code, resp.Result.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	return resp
}

// withDecision adds to an answer what policies want people and the audit log to
// know. What else the answer tells the audit log stays.
func withDecision(resp admission.Response, d *engine.Decision) admission.Response {
	for key, value := range decisions.Annotations(d) {
		if _, said := resp.AuditAnnotations[key]; !said {
			if resp.AuditAnnotations == nil {
				resp.AuditAnnotations = map[string]string{}
			}
			resp.AuditAnnotations[key] = value
		}
	}
	return resp.WithWarnings(decisions.Warnings(decisions.Lines(d.Warnings))...)
}

// nowhere warns that an object is accepted, and waits for a target. Where
// policies exclude some, each is told on a line of its own: that is the answer
// to the next question.
func nowhere(resp admission.Response, namespace string, where placement.Decision, excluded map[string]string) admission.Response {
	if len(excluded) == 0 {
		return waits(resp, where.Why(namespace))
	}
	resp = waits(resp, fmt.Sprintf("0 of %d targets match", len(where.Exclusions)))
	var lines []string
	for _, e := range where.Exclusions {
		lines = append(lines, fmt.Sprintf("target %s %s", e.Target, e.Why))
	}
	return resp.WithWarnings(decisions.Warnings(lines)...)
}

// waits says of what is let in why it runs nowhere yet.
func waits(resp admission.Response, why string) admission.Response {
	if resp.AuditAnnotations == nil {
		resp.AuditAnnotations = map[string]string{}
	}
	resp.AuditAnnotations["decision"] = "unschedulable"
	return resp.WithWarnings(shorten("accepted, and waiting for a target: " + why))
}

// unchanged tells an update of nothing that policies see and Portico sends.
func unchanged(object, old *unstructured.Unstructured) bool {
	return old != nil && equality.Semantic.DeepEqual(object.Object["spec"], old.Object["spec"]) &&
		equality.Semantic.DeepEqual(object.GetLabels(), old.GetLabels()) &&
		equality.Semantic.DeepEqual(object.GetAnnotations(), old.GetAnnotations())
}

// republishes tells whether a target is published in another way than before.
func republishes(target, old *v1alpha1.KubernetesTarget) bool {
	return old == nil || !equality.Semantic.DeepEqual(target.Spec, old.Spec) || !equality.Semantic.DeepEqual(target.Labels, old.Labels)
}
