package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/placement"
)

// foresee tells the user now what the scheduler, or the target's spec.allow,
// would say later. What is on a target already may be changed, with a warning,
// although the target no longer lets it in.
func foresee(o Options, q question, cached *lookup) admission.Response {
	resp := admission.Allowed("")
	member, _ := policies.MembershipOf(q.object, cached.namespaceMeta())
	if app := cached.application(member.Application); app != nil {
		if app.Spec.TargetRef != nil {
			errs := o.Frontier.ValidateNative(q.object, cached.target(app.Spec.TargetRef.Name))
			switch {
			case len(errs) > 0 && !kinds.IsRemote(q.old) && q.UserInfo.Username != o.Identity:
				return verdict(q.Request, errs)
			case len(errs) > 0:
				resp.Warnings = append(resp.Warnings, shorten("accepted, and not sent: "+errs[0].Detail))
			}
			resp.AuditAnnotations = map[string]string{"target": app.Spec.TargetRef.Name}
			return resp
		}
		if member.Selector == nil {
			member.Selector = app.Spec.TargetSelector
		}
		if member.Tolerations == nil {
			member.Tolerations = app.Spec.Tolerations
		}
	}
	selector, err := policies.Selector(member.Selector)
	if err != nil {
		return resp // refused already, by validation
	}
	decision := placement.Decide(placement.Question{
		Selector: selector, Tolerations: member.Tolerations, Targets: cached.targets(),
		Cargo: []policies.Cargo{policies.CargoOfNative(q.object)}, Frontier: o.Frontier,
	})
	if decision.Target != "" {
		return resp
	}
	waits(&resp, decision.Why(cached.namespace))
	return resp
}

// waits says of what is let in why it runs nowhere yet.
func waits(resp *admission.Response, why string) {
	resp.Warnings = append(resp.Warnings, shorten("accepted, and waiting for a target: "+why))
	resp.AuditAnnotations = map[string]string{"decision": "unschedulable"}
}

// maxWarning is what an API server passes on of a warning.
const maxWarning = 256

func shorten(text string) string {
	if len(text) <= maxWarning {
		return text
	}
	// A character that was cut in two is left out: the API server drops a
	// warning that is not UTF-8.
	return strings.ToValidUTF8(text[:maxWarning-len("...")], "") + "..."
}

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
			waits(resp, fmt.Sprintf("no KubernetesApplication %s is in namespace %s, and it is the application that this names", name, h.Namespace))
		}
		return
	}
	around := h.surroundings(name)
	around.Resources = append(slices.DeleteFunc(around.Resources, func(r v1alpha1.KubernetesApplicationResource) bool { return r.Name == resource.Name }), *resource)
	q, err := around.Application(app, "")
	h.foresee(resp, q, err)
}

// surroundings are what the cache says, as far as it matters to whether any target
// would do: of an application's resources, and not of how many others there are.
func (h *hearing) surroundings(application string) placement.Surroundings {
	out := placement.Surroundings{Targets: h.lookup.targets(), Frontier: h.options.Frontier, Scope: h.guessScope}
	if application != "" {
		out.Resources = h.lookup.members(application)
	}
	return out
}

func (h *hearing) foresee(resp *admission.Response, q placement.Question, malformed error) {
	if malformed != nil || h.lookup.err != nil {
		return // what was malformed before may stay so, and is no reason to ask
	}
	if decision := placement.Decide(q); decision.Target == "" {
		waits(resp, decision.Why(h.Namespace))
	}
}

// guessScope is scope where a wrong answer does no harm: it does not fail.
func (h *hearing) guessScope(kind schema.GroupVersionKind) bool {
	ctx, cancel := context.WithTimeout(h.ctx, askTimeout)
	defer cancel()
	_, namespaced, err := h.options.Hub.Resource(ctx, kind)
	return err == nil && !namespaced
}
