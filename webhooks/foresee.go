package webhooks

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/placement"
)

// foresee tells the user now what the scheduler, or the target's spec.allow,
// would say later, and what policies say. What is on a target already may be
// changed, with a warning, although the target no longer lets it in, or a policy
// would keep it off.
func foresee(o Options, q question, cached *lookup) admission.Response {
	member, _ := policies.MembershipOf(q.object, cached.namespaceMeta())
	app := cached.application(member.Application)
	at := ""
	switch {
	case app == nil:
	case app.Spec.TargetRef != nil:
		at = app.Spec.TargetRef.Name
	default:
		if member.Selector == nil {
			member.Selector = app.Spec.TargetSelector
		}
		if member.Tolerations == nil {
			member.Tolerations = app.Spec.Tolerations
		}
	}
	selector, err := policies.Selector(member.Selector)
	if err != nil {
		return admission.Allowed("") // refused already, by validation
	}
	said := undisputed
	if o.asked(policyv1alpha1.Scheduling, q.Request) && !unchanged(q.object, q.old) {
		place := cached.place(input.Application{Name: member.Application, Target: at}, selector)
		said = o.decide(cached.ctx, q.Request, place, []sent{{object: q.object, old: q.old, new: !kinds.IsRemote(q.old)}})
	}
	var resp admission.Response
	switch {
	case !said.Allowed():
		resp = forbidden(said)
	case at != "":
		target := cached.target(at)
		resp = joins(o, q, target)
		resp.AuditAnnotations = withTarget(resp.AuditAnnotations, at)
		if resp.Allowed && len(resp.Warnings) == 0 {
			resp = o.rehearseNative(cached, q, member.Application, target, resp)
		}
	default:
		var target *v1alpha1.KubernetesTarget
		resp, target = looks(o, q, cached, placement.Question{Selector: selector, Tolerations: member.Tolerations}, said)
		resp = o.rehearseNative(cached, q, member.Application, target, resp)
	}
	return withDecision(resp, said)
}

// joins asks the target that an object's application is on.
func joins(o Options, q question, target *v1alpha1.KubernetesTarget) admission.Response {
	errs := o.Frontier.ValidateNative(q.object, target)
	switch {
	case len(errs) > 0 && !kinds.IsRemote(q.old) && q.UserInfo.Username != o.Identity:
		return verdict(q.Request, errs)
	case len(errs) > 0:
		return admission.Allowed("").WithWarnings(shorten("accepted, and not sent: " + errs[0].Detail))
	}
	return admission.Allowed("")
}

// withTarget notes where an object runs that is let in.
func withTarget(annotations map[string]string, target string) map[string]string {
	if annotations == nil {
		return map[string]string{"target": target}
	}
	return annotations
}

// looks looks for a target as the scheduler will, and returns the one it would
// choose.
func looks(o Options, q question, cached *lookup, where placement.Question, said *engine.Decision) (admission.Response, *v1alpha1.KubernetesTarget) {
	where.Targets, where.Frontier = cached.targets(), o.Frontier
	if o.Rehearsals != nil { // which of the targets that fit matters to nobody else
		where.Placed = cached.placed()
	}
	where.Cargo = []policies.Cargo{policies.CargoOfNative(q.object)}
	where.Excluded, where.Scores = decisions.Exclusions(said.Excluded), said.Scores
	resp := admission.Allowed("")
	decision := placement.Decide(where)
	if decision.Target != "" {
		return resp, cached.target(decision.Target)
	}
	return nowhere(resp, cached.namespace, decision, where.Excluded), nil
}

// maxWarning is what an API server passes on of a warning.
const maxWarning = 256

func shorten(text string) string { return policies.Shorten(text, maxWarning) }

// foreseeResource tells what the scheduler would say of a resource, or of the
// application it is in. One that somebody else's object controls is theirs to
// place.
func (h *hearing) foreseeResource(resp *admission.Response, resource *v1alpha1.KubernetesApplicationResource) {
	name, member := resource.Labels[v1alpha1.ApplicationLabel]
	if !member {
		if metav1.GetControllerOf(resource) == nil {
			q, err := h.surroundings("").Resource(resource, "")
			h.foresee(resp, q, err)
		}
		return
	}
	app := h.lookup.application(name)
	if app == nil {
		if h.lookup.err == nil {
			*resp = waits(*resp, fmt.Sprintf("no KubernetesApplication %s is in namespace %s, and it is the application that this names", name, h.Namespace))
		}
		return
	}
	around := h.surroundings(name)
	around.Resources = append(slices.DeleteFunc(around.Resources, func(r v1alpha1.KubernetesApplicationResource) bool { return r.Name == resource.Name }), *resource)
	q, err := around.Application(app, "")
	h.foresee(resp, q, err)
}

// surroundings are what the cache says, as far as it matters here: how many others
// there are matters only when the target is asked that would be chosen.
func (h *hearing) surroundings(application string) placement.Surroundings {
	out := placement.Surroundings{Targets: h.lookup.targets(), Frontier: h.options.Frontier, Scope: h.guessScope}
	switch {
	case h.options.Rehearsals != nil:
		out.Resources = h.lookup.resources()
	case application != "":
		out.Resources = h.lookup.members(application)
	}
	return out
}

func (h *hearing) foresee(resp *admission.Response, q placement.Question, malformed error) {
	if malformed != nil || h.lookup.err != nil {
		return // what was malformed before may stay so, and is no reason to ask
	}
	q.Excluded, q.Scores = decisions.Exclusions(h.said.Excluded), h.said.Scores
	decision := placement.Decide(q)
	if decision.Target == "" {
		*resp = nowhere(*resp, h.Namespace, decision, q.Excluded)
		return
	}
	h.stage = h.lookup.target(decision.Target)
}

// guessScope is scope where a wrong answer does no harm: it does not fail.
func (h *hearing) guessScope(kind schema.GroupVersionKind) bool {
	ctx, cancel := context.WithTimeout(h.ctx, askTimeout)
	defer cancel()
	_, namespaced, err := h.options.Hub.Resource(ctx, kind)
	return err == nil && !namespaced
}
