package webhooks

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/placement"
)

// native refuses what could not be placed or moved, and warns when no target
// matches.
func native(o Options) handler {
	return natives(func(ctx context.Context, q question) (admission.Response, error) {
		cached := lookup{ctx: ctx, reader: o.Reader, namespace: q.Namespace}
		errs := policies.ValidateNative(policies.NativeQuestion{
			Kind:        q.kind,
			Object:      q.object,
			Old:         q.old,
			Namespace:   cached.namespaceMeta(),
			Application: cached.application,
		})
		if cached.err != nil {
			return admission.Response{}, cached.err
		}
		if len(errs) > 0 || !kinds.IsRemote(q.object) {
			return verdict(q.Request, errs), nil
		}
		resp := foresee(o, q, &cached)
		return resp, cached.err
	})
}

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
		resp, target = waits(o, q, cached, placement.Question{Selector: selector, Tolerations: member.Tolerations}, said)
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

// waits looks for a target as the scheduler will, and returns the one it would
// choose.
func waits(o Options, q question, cached *lookup, where placement.Question, said *engine.Decision) (admission.Response, *v1alpha1.KubernetesTarget) {
	resp := admission.Allowed("")
	where.Targets, where.Frontier = cached.targets(), o.Frontier
	if o.Rehearsals != nil { // which of the targets that fit matters to nobody else
		where.Placed = cached.placed()
	}
	where.Cargo = []policies.Cargo{policies.CargoOfNative(q.object)}
	where.Excluded, where.Scores = decisions.Exclusions(said.Excluded), said.Scores
	decision := placement.Decide(where)
	if decision.Target != "" {
		return resp, cached.target(decision.Target)
	}
	resp.AuditAnnotations = map[string]string{"decision": "unschedulable"}
	return nowhere(resp, cached.namespace, decision, where.Excluded), nil
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

// lookup reads from the cache, and keeps the first error.
type lookup struct {
	ctx       context.Context //nolint:containedctx // lives for one request
	reader    client.Reader
	namespace string
	err       error
}

func (l *lookup) keep(err error) {
	if l.err == nil {
		l.err = err
	}
}

func (l *lookup) namespaceMeta() metav1.Object {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(schemaNamespace)
	if err := l.reader.Get(l.ctx, client.ObjectKey{Name: l.namespace}, ns); client.IgnoreNotFound(err) != nil {
		l.keep(fmt.Errorf("reading namespace %s: %w", l.namespace, err))
	}
	return ns
}

// place gathers what policies see of where something could run.
func (l *lookup) place(app input.Application, selector labels.Selector) decisions.Place {
	return decisions.Place{
		Namespace: decisions.Namespace(l.namespace, l.namespaceMeta()), Application: app,
		Selector: selector, Targets: l.targets(), Placed: l.placed(),
	}
}

// placed counts what is on each target of the namespace.
func (l *lookup) placed() map[string]int {
	list := &v1alpha1.KubernetesApplicationResourceList{}
	if err := l.reader.List(l.ctx, list, client.InNamespace(l.namespace), client.UnsafeDisableDeepCopy); err != nil {
		l.keep(fmt.Errorf("counting placed resources: %w", err))
	}
	return placement.Placed(list.Items)
}

func (l *lookup) application(name string) *v1alpha2.KubernetesApplication {
	app := &v1alpha2.KubernetesApplication{}
	err := l.reader.Get(l.ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, app)
	if err != nil {
		if client.IgnoreNotFound(err) != nil {
			l.keep(fmt.Errorf("reading application %s: %w", name, err))
		}
		return nil
	}
	return app
}

// targets are those of the cache itself: there may be many, and nobody here
// changes them.
func (l *lookup) targets() []v1alpha1.KubernetesTarget {
	list := &v1alpha1.KubernetesTargetList{}
	if err := l.reader.List(l.ctx, list, client.InNamespace(l.namespace), client.UnsafeDisableDeepCopy); err != nil {
		l.keep(fmt.Errorf("listing targets: %w", err))
	}
	return list.Items
}

// target returns nil for one that is not published.
func (l *lookup) target(name string) *v1alpha1.KubernetesTarget {
	target := &v1alpha1.KubernetesTarget{}
	if err := l.reader.Get(l.ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, target); err != nil {
		if client.IgnoreNotFound(err) != nil {
			l.keep(fmt.Errorf("reading target %s: %w", name, err))
		}
		return nil
	}
	return target
}
