package webhooks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// validateWorkload validates Portico's own kinds. It also checks that the user has the
// rights that Portico uses on the user's behalf.
func validateWorkload(o Options, c connections) handler {
	decoder := admission.NewDecoder(o.Scheme)
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if subresource(req) {
			return admission.Allowed(""), nil
		}
		h := review{Request: req, ctx: ctx, options: o, decoder: decoder, decision: noDecision,
			lookup: cacheLookup{ctx: ctx, reader: o.Reader, load: o.Load, namespace: req.Namespace}}
		var errs field.ErrorList
		var err error
		switch req.Kind.Kind {
		case "KubernetesApplication":
			errs, err = h.validateApplication()
		case "KubernetesApplicationResource":
			errs, err = h.validateResource()
		case "KubernetesTarget":
			errs, err = h.validateTarget(c)
		}
		if err == nil {
			err = h.lookup.err
		}
		if err != nil {
			return admission.Response{}, fmt.Errorf("validating the %s: %w", req.Kind.Kind, err)
		}
		return h.respond(errs), nil
	}
}

// review is one request about one of Portico's own kinds.
type review struct {
	admission.Request
	ctx     context.Context //nolint:containedctx // lives for one request
	options Options
	decoder admission.Decoder
	lookup  cacheLookup
	// decision is the decision of the policies.
	decision *engine.Decision
	// dryRunTarget is the target for the dry run. items are the objects to try, which
	// are those that are new to the target, and templates are all objects of the
	// application.
	dryRunTarget *v1alpha1.KubernetesTarget
	items        []dryRunItem
	templates    []*unstructured.Unstructured
	// warnings are added to an allowed and to a denied response.
	warnings []string
	// preview warns when no target matches. It is nil for an object that has a target.
	preview func(*admission.Response)
}

// respond returns the response to a review: the field errors, else the decision of the
// policies, else the result of the dry run.
func (h *review) respond(errs field.ErrorList) admission.Response {
	resp := validationResponse(h.Request, errs)
	if !h.decision.Allowed() {
		resp = deniedByPolicies(h.decision)
	}
	resp = withDecision(resp, h.decision).WithWarnings(h.warnings...)
	if resp.Allowed && h.preview != nil {
		h.preview(&resp) // if the cache fails, the warning is missing and the request is allowed
	}
	if resp.Allowed && h.dryRunTarget != nil {
		resp = h.options.dryRun(h.ctx, h.Request, h.dryRunTarget, h.items, h.templates, resp)
	}
	return resp
}

// validation is the validation of one kind. old is nil on create.
type validation[P client.Object] struct {
	// fields validates the object itself.
	fields func(now, old P) field.ErrorList
	// allowed validates the object against spec.allow of its target.
	allowed func(now, old P) field.ErrorList
	// rights are the rights that the user needs.
	rights func(now, old P) []policies.Right
	// evaluate evaluates the policies. It is called for a valid object.
	evaluate func(now, old P)
}

// validateObject decodes and validates an object. An object that is being deleted is
// validated, too, because Portico still uses it. Portico itself needs no rights, and
// writes an object that spec.allow excludes into a status.
func validateObject[T any, P interface {
	*T
	client.Object
}](h *review, v validation[P]) (now, old P, errs field.ErrorList, err error) {
	now = P(new(T))
	if err := h.decoder.DecodeRaw(h.Object, now); err != nil {
		return nil, nil, nil, err
	}
	if len(h.OldObject.Raw) > 0 {
		old = P(new(T))
		if err := h.decoder.DecodeRaw(h.OldObject, old); err != nil {
			return nil, nil, nil, err
		}
	}
	now.SetNamespace(h.Namespace)
	errs = v.fields(now, old)
	if h.UserInfo.Username == h.options.Identity {
		return now, old, errs, nil
	}
	errs = append(errs, v.allowed(now, old)...)
	forbidden, err := missingRights(h.ctx, h.options.Hub, h.UserInfo, v.rights(now, old))
	if errs = append(errs, forbidden...); err == nil && len(errs) == 0 {
		v.evaluate(now, old)
	}
	return now, old, errs, err
}

// needsEvaluation tells whether policies or a target decide about the objects that are
// sent.
func (h *review) needsEvaluation() bool {
	return h.options.DryRunner != nil || h.options.policiesApply(policyv1alpha1.Scheduling, h.Request)
}

// isClusterScoped asks the hub for the scope of a kind. A kind that the hub does not
// have may exist on the target. The controller checks its scope before it sends the
// object.
func (h *review) isClusterScoped(kind schema.GroupVersionKind) bool {
	clusterScoped, err := h.scopeOf(kind)
	if err != nil && !meta.IsNoMatchError(err) {
		h.lookup.recordError(fmt.Errorf("looking up kind %s on the hub: %w", kind.Kind, err))
	}
	return clusterScoped
}

// guessClusterScoped does the same for a preview, in which an error does no harm.
func (h *review) guessClusterScoped(kind schema.GroupVersionKind) bool {
	clusterScoped, _ := h.scopeOf(kind)
	return clusterScoped
}

func (h *review) scopeOf(kind schema.GroupVersionKind) (clusterScoped bool, err error) {
	ctx, cancel := context.WithTimeout(h.ctx, hubTimeout)
	defer cancel()
	_, namespaced, err := h.options.Hub.Resource(ctx, kind)
	return err == nil && !namespaced, err
}

// evaluateScheduling evaluates the policies for all objects that an application sends
// to one target.
func (h *review) evaluateScheduling(app input.Application, objects []sentObject, targetSelector *metav1.LabelSelector) {
	if len(objects) == 0 {
		return
	}
	if h.options.policiesApply(policyv1alpha1.Scheduling, h.Request) {
		q, err := h.lookup.candidates(h.options.AllowDefaults).ForMember(policies.Membership{Application: app.Name, Selector: targetSelector})
		if err != nil {
			return // validation has denied the selector
		}
		h.decision = h.options.evaluateScheduling(h.ctx, h.Request, h.lookup.schedulingContext(app, q), objects)
	}
	if app.Target != "" {
		h.dryRunTarget = h.lookup.target(app.Target)
	}
}

func targetName(ref *v1alpha1.TargetReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}
