package webhooks

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
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
	why := decision.Why(cached.namespace)
	resp.Warnings = append(resp.Warnings, shorten(fmt.Sprintf("accepted, and waiting for a target: %s", why)))
	resp.AuditAnnotations = map[string]string{"decision": "unschedulable"}
	return resp
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

func (l *lookup) targets() []v1alpha1.KubernetesTarget {
	list := &v1alpha1.KubernetesTargetList{}
	if err := l.reader.List(l.ctx, list, client.InNamespace(l.namespace)); err != nil {
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
