package webhooks

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/input"
	"github.com/portico-io/portico/policies/targetselection"
)

// cacheLookup reads from the cache for one request, and keeps the first error. The
// objects in its lists belong to the cache: nobody may change them.
type cacheLookup struct {
	ctx       context.Context //nolint:containedctx // lives for one request
	reader    client.Reader
	load      *targetselection.Load
	namespace string
	err       error
}

func (l *cacheLookup) recordError(err error) {
	if l.err == nil {
		l.err = err
	}
}

// namespaceMeta returns the metadata of the namespace. A namespace that the cache does
// not have yet has its name and nothing else.
func (l *cacheLookup) namespaceMeta() metav1.Object {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := l.reader.Get(l.ctx, client.ObjectKey{Name: l.namespace}, ns); client.IgnoreNotFound(err) != nil {
		l.recordError(fmt.Errorf("reading namespace %s: %w", l.namespace, err))
	}
	ns.SetName(l.namespace)
	return ns
}

// candidates returns the targets of the namespace, with the number of resources on each.
func (l *cacheLookup) candidates(defaults policies.AllowDefaults) targetselection.Candidates {
	return targetselection.Candidates{Targets: l.targets(), Placed: l.load.PlacedByTarget(l.namespace), AllowDefaults: defaults}
}

// schedulingContext returns the part of a scheduling question that is the same for all
// objects of an application.
func (l *cacheLookup) schedulingContext(app input.Application, q targetselection.Query) decisions.SchedulingContext {
	return decisions.NewSchedulingContext(decisions.NamespaceFromMetadata(l.namespace, l.namespaceMeta()), app, q)
}

// application returns nil for an application that does not exist.
func (l *cacheLookup) application(name string) *v1alpha2.KubernetesApplication {
	app := &v1alpha2.KubernetesApplication{}
	if err := l.reader.Get(l.ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, app); err != nil {
		if client.IgnoreNotFound(err) != nil {
			l.recordError(fmt.Errorf("reading application %s: %w", name, err))
		}
		return nil
	}
	return app
}

// target returns nil for a target that does not exist.
func (l *cacheLookup) target(name string) *v1alpha1.KubernetesTarget {
	target := &v1alpha1.KubernetesTarget{}
	if err := l.reader.Get(l.ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, target); err != nil {
		if client.IgnoreNotFound(err) != nil {
			l.recordError(fmt.Errorf("reading target %s: %w", name, err))
		}
		return nil
	}
	return target
}

// targets returns the targets of the namespace.
func (l *cacheLookup) targets() []v1alpha1.KubernetesTarget {
	return l.listTargets(client.InNamespace(l.namespace))
}

// relatedTargets returns the targets of all namespaces that publish policies see beside a
// target.
func (l *cacheLookup) relatedTargets(target *v1alpha1.KubernetesTarget) []v1alpha1.KubernetesTarget {
	related, err := decisions.ListRelatedTargets(target, func(key string) ([]v1alpha1.KubernetesTarget, error) {
		var list v1alpha1.KubernetesTargetList
		err := l.reader.List(l.ctx, &list, client.MatchingFields{policies.RelatedTargetIndex: key}, client.UnsafeDisableDeepCopy)
		return list.Items, err
	})
	if err != nil {
		l.recordError(err)
	}
	return related
}

// targetsConnectedWith returns the targets, of all namespaces, whose connection is in a
// Secret of the namespace.
func (l *cacheLookup) targetsConnectedWith(secret string) []v1alpha1.KubernetesTarget {
	key := client.ObjectKey{Namespace: l.namespace, Name: secret}
	return l.listTargets(client.MatchingFields{policies.ConnectionSecretIndex: key.String()})
}

func (l *cacheLookup) listTargets(options ...client.ListOption) []v1alpha1.KubernetesTarget {
	list := &v1alpha1.KubernetesTargetList{}
	if err := l.reader.List(l.ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		l.recordError(fmt.Errorf("listing targets: %w", err))
	}
	return list.Items
}

// members returns the resources of an application.
func (l *cacheLookup) members(application string) []v1alpha1.KubernetesApplicationResource {
	list := &v1alpha1.KubernetesApplicationResourceList{}
	if err := l.reader.List(l.ctx, list, client.InNamespace(l.namespace), client.MatchingFields{policies.ApplicationIndex: application}, client.UnsafeDisableDeepCopy); err != nil {
		l.recordError(fmt.Errorf("listing the resources of application %s: %w", application, err))
	}
	return list.Items
}
