package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/decisions"
	"github.com/portico-io/portico/policies/input"
)

// publish asks whether a target may be published, when that is news.
func (h *hearing) publish(target, old *v1alpha1.KubernetesTarget) {
	h.published, h.publishedBefore = target, old
	if !h.options.asked(policyv1alpha1.Publish, h.Request) || !republishes(target, old) {
		return
	}
	q := decisions.Publish(requestOf(h.Request), target, old,
		decisions.Namespace(h.Namespace, h.lookup.namespaceMeta()), h.lookup.everyTarget())
	h.said = h.options.Policies.Ask(h.ctx, occasion(h.Request), q)
}

// application asks about the templates of an application that are new, that
// changed, or that a target was chosen for by hand.
func (h *hearing) application(app, old *v1alpha2.KubernetesApplication) {
	if !h.asks() {
		return
	}
	at, before := targetName(app.Spec.TargetRef), ""
	was := map[string]*unstructured.Unstructured{}
	if old != nil {
		before = targetName(old.Spec.TargetRef)
		for _, t := range old.Spec.ResourceTemplates {
			was[t.Metadata.Name] = policies.Template(t.Spec.Template)
		}
	}
	var all []sent
	for i, t := range app.Spec.ResourceTemplates {
		object, last := policies.Template(t.Spec.Template), was[t.Metadata.Name]
		if object == nil || last != nil && at == before && equality.Semantic.DeepEqual(object.Object, last.Object) {
			continue
		}
		all = append(all, sent{
			object: object, old: last, new: last == nil || at != before,
			path: fmt.Sprintf("spec.resourceTemplates[%d].spec.template", i),
		})
		h.acts = append(h.acts, act{resource: resourceOf(app, t), path: all[len(all)-1].path})
	}
	for _, t := range app.Spec.ResourceTemplates {
		h.with = append(h.with, policies.Template(t.Spec.Template))
	}
	h.schedule(input.Application{Name: app.Name, Target: at}, all, app.Spec.TargetSelector)
}

// resource asks about a resource that is new, whose template changed, or that
// goes to another target than before.
func (h *hearing) resource(resource, old *v1alpha1.KubernetesApplicationResource) {
	object := policies.Template(resource.Spec.Template)
	if object == nil || !h.asks() {
		return
	}
	app, selector := h.home(resource)
	s := sent{object: object, path: "spec.template", new: true}
	if old != nil {
		before, _ := h.home(old)
		s.new = before != app
		s.old = policies.Template(old.Spec.Template)
		if !s.new && s.old != nil && equality.Semantic.DeepEqual(object.Object, s.old.Object) {
			return
		}
	}
	h.acts = []act{{resource: resource}}
	h.schedule(app, []sent{s}, selector)
}

// home is the application a resource belongs to, with the target it runs on, and
// which targets are asked for.
func (h *hearing) home(resource *v1alpha1.KubernetesApplicationResource) (input.Application, *metav1.LabelSelector) {
	out := input.Application{Target: targetName(resource.Spec.TargetRef)}
	selector := resource.Spec.TargetSelector
	if name, member := resource.Labels[v1alpha1.ApplicationLabel]; member {
		out.Name = name
		if app := h.lookup.application(name); app != nil {
			selector = app.Spec.TargetSelector
			if out.Target == "" {
				out.Target = targetName(app.Spec.TargetRef)
			}
		}
	}
	return out, selector
}

// asks tells whether anybody has a say in what is sent to a target.
func (h *hearing) asks() bool {
	return h.options.Rehearsals != nil || h.options.asked(policyv1alpha1.Scheduling, h.Request)
}

// schedule asks about all that an application sends to one target.
func (h *hearing) schedule(app input.Application, all []sent, selects *metav1.LabelSelector) {
	selector, err := policies.Selector(selects)
	if err != nil || len(all) == 0 {
		return // a selector that cannot be read is refused already
	}
	if h.options.asked(policyv1alpha1.Scheduling, h.Request) {
		h.said = h.options.decide(h.ctx, h.Request, h.lookup.place(app, selector), all)
	}
	if app.Target != "" {
		h.stage = h.lookup.target(app.Target)
	}
}

func targetName(ref *v1alpha1.TargetReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// everyTarget are those of all namespaces, as in the cache.
func (l *lookup) everyTarget() []v1alpha1.KubernetesTarget {
	everywhere := lookup{ctx: l.ctx, reader: l.reader}
	defer func() { l.keep(everywhere.err) }()
	return everywhere.targets()
}
