package webhooks

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
)

var schemaNamespace = corev1.SchemeGroupVersion.WithKind("Namespace")

// workload validates Portico's own kinds, and asks whether the user may do what
// Portico would do for them.
func workload(o Options, c connections) handler {
	decoder := admission.NewDecoder(o.Scheme)
	return func(ctx context.Context, req admission.Request) (admission.Response, error) {
		if subresource(req) {
			return admission.Allowed(""), nil
		}
		h := hearing{Request: req, ctx: ctx, options: o, decoder: decoder, said: undisputed,
			lookup: lookup{ctx: ctx, reader: o.Reader, namespace: req.Namespace}}
		var errs field.ErrorList
		var err error
		switch req.Kind.Kind {
		case "KubernetesApplication":
			errs, err = judge(&h, policies.ValidateApplication, policies.RightsForApplication, h.letIn, h.application)
		case "KubernetesApplicationResource":
			errs, err = judge(&h, policies.ValidateResource, policies.RightsForResource, h.letInResource, h.resource)
		case "KubernetesTarget":
			errs, err = judge(&h, policies.ValidateTarget, policies.RightsForTarget, nil, h.publish)
			if now := h.published; err == nil && len(errs) == 0 && h.said.Allowed() && now != nil { // only who may read the Secret hears of it
				errs = c.target(ctx, req, now, h.publishedBefore, &h.asides)
			}
		}
		if err == nil {
			err = h.lookup.err
		}
		if err != nil {
			return admission.Response{}, fmt.Errorf("judging the %s: %w", req.Kind.Kind, err)
		}
		resp := verdict(req, errs)
		if !h.said.Allowed() {
			resp = forbidden(h.said)
		}
		resp = withDecision(resp, h.said).WithWarnings(h.asides.Warnings...)
		if resp.Allowed && h.unplaced != nil {
			h.unplaced(&resp) // a warning, which is not worth a refusal when the cache fails
		}
		if resp.Allowed && h.stage != nil {
			resp = o.rehearse(ctx, req, h.stage, h.acts, h.with, resp)
		}
		return resp, nil
	}
}

// hearing is one request about one of Portico's own kinds.
type hearing struct {
	admission.Request
	ctx     context.Context //nolint:containedctx // lives for one request
	options Options
	decoder admission.Decoder
	lookup  lookup
	// said is what policies say.
	said *engine.Decision
	// stage is the target that what is sent goes to, or would; acts are what is sent that
	// was not sent before, and with is everything that is.
	stage *v1alpha1.KubernetesTarget
	acts  []act
	with  []*unstructured.Unstructured
	// asides are warnings, whatever the verdict.
	asides admission.Response
	// published is the target that a request is about, if it is.
	published, publishedBefore *v1alpha1.KubernetesTarget
	// unplaced finds a target, once all is well, or tells why none would do; nil for
	// what has one.
	unplaced func(*admission.Response)
}

// judge asks what is wrong with an object, which rights it takes, and whether
// its target lets it in, and if nothing is wrong so far what policies say; unless
// it is being deleted: a finalizer may always go. Portico itself needs no rights,
// and says in a status what is not let in.
func judge[T any, P interface {
	*T
	client.Object
}](h *hearing, problems func(now, old P) field.ErrorList, rights func(now, old P) []policies.Right, letIn func(now, old P) field.ErrorList, ask func(now, old P)) (field.ErrorList, error) {
	now, old := P(new(T)), P(nil)
	if err := h.decoder.DecodeRaw(h.Object, now); err != nil {
		return nil, err
	}
	if now.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if len(h.OldObject.Raw) > 0 {
		old = P(new(T))
		if err := h.decoder.DecodeRaw(h.OldObject, old); err != nil {
			return nil, err
		}
	}
	now.SetNamespace(h.Namespace)
	errs := problems(now, old)
	if h.UserInfo.Username == h.options.Identity {
		return errs, nil
	}
	if letIn != nil {
		errs = append(errs, letIn(now, old)...)
	}
	lacks, err := lacking(h.ctx, h.options.Hub, h.UserInfo, rights(now, old))
	if errs = append(errs, lacks...); err == nil && len(errs) == 0 {
		ask(now, old)
	}
	return errs, err
}

func (h *hearing) letIn(app, old *v1alpha2.KubernetesApplication) field.ErrorList {
	if errs := policies.KeepApplicationPlaced(app, old); len(errs) > 0 {
		return errs
	}
	if app.Spec.TargetRef == nil {
		h.unplaced = func(resp *admission.Response) {
			around := h.surroundings(app.Name)
			q, err := around.Application(app, "")
			h.foresee(resp, q, err)
		}
		return nil
	}
	return h.options.Frontier.ValidateApplication(app, old, h.lookup.target(app.Spec.TargetRef.Name), h.scope)
}

// letInResource judges by the resource's own target, else by that of the
// application it is in.
func (h *hearing) letInResource(resource, old *v1alpha1.KubernetesApplicationResource) field.ErrorList {
	if errs := policies.KeepResourcePlaced(resource, old); len(errs) > 0 {
		return errs
	}
	ref := resource.Spec.TargetRef
	if name, member := resource.Labels[v1alpha1.ApplicationLabel]; ref == nil && member {
		if app := h.lookup.application(name); app != nil {
			ref = app.Spec.TargetRef
		}
	}
	if ref == nil {
		h.unplaced = func(resp *admission.Response) { h.foreseeResource(resp, resource) }
		return nil
	}
	return h.options.Frontier.ValidateResource(resource, old, h.lookup.target(ref.Name), h.scope)
}

// scope asks the hub about a kind. One that it does not have may exist on the
// target, which is asked before anything is sent there.
func (h *hearing) scope(kind schema.GroupVersionKind) bool {
	ctx, cancel := context.WithTimeout(h.ctx, askTimeout)
	defer cancel()
	_, namespaced, err := h.options.Hub.Resource(ctx, kind)
	if err != nil {
		if !meta.IsNoMatchError(err) {
			h.lookup.keep(fmt.Errorf("looking up kind %s on the hub: %w", kind.Kind, err))
		}
		return false
	}
	return !namespaced
}
