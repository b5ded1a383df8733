package webhooks

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/kinds"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
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
			Targets:     cached.targets,
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
func (l *lookup) placed() map[string]int { return placement.Placed(l.resources()) }

// resources are those of the namespace, of the cache itself, like targets.
func (l *lookup) resources() []v1alpha1.KubernetesApplicationResource {
	list := &v1alpha1.KubernetesApplicationResourceList{}
	if err := l.reader.List(l.ctx, list, client.InNamespace(l.namespace), client.UnsafeDisableDeepCopy); err != nil {
		l.keep(fmt.Errorf("listing resources: %w", err))
	}
	return list.Items
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

// members are the resources of an application.
func (l *lookup) members(application string) []v1alpha1.KubernetesApplicationResource {
	list := &v1alpha1.KubernetesApplicationResourceList{}
	if err := l.reader.List(l.ctx, list, client.InNamespace(l.namespace), client.MatchingLabels{v1alpha1.ApplicationLabel: application}); err != nil {
		l.keep(fmt.Errorf("listing the resources of application %s: %w", application, err))
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
