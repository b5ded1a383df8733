package webhooks

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/input"
)

func (h *review) validateResource() (field.ErrorList, error) {
	_, _, errs, err := validateObject(h, validation[*v1alpha1.KubernetesApplicationResource]{
		fields: policies.ValidateResource, allowed: h.checkResourceAllowed,
		rights: policies.RightsForResource, evaluate: h.evaluateResource,
	})
	return errs, err
}

// checkResourceAllowed validates a resource against spec.allow of its own target, or of
// the target of its application. For a resource without a target it sets up the preview.
func (h *review) checkResourceAllowed(resource, old *v1alpha1.KubernetesApplicationResource) field.ErrorList {
	if errs := policies.ValidateResourceTarget(resource, old); len(errs) > 0 {
		return errs
	}
	ref := resource.Spec.TargetRef
	if name, member := resource.Labels[v1alpha1.ApplicationLabel]; ref == nil && member {
		if app := h.lookup.application(name); app != nil {
			ref = app.Spec.TargetRef
		}
	}
	if ref != nil {
		return h.options.AllowDefaults.ValidateResource(resource, old, h.lookup.target(ref.Name), h.isClusterScoped)
	}
	if resource.DeletionTimestamp == nil {
		h.preview = func(resp *admission.Response) { h.previewResource(resp, resource) }
	}
	return nil
}

// evaluateResource evaluates the policies for a resource that is new, whose template
// changed, or that gets another target.
func (h *review) evaluateResource(resource, old *v1alpha1.KubernetesApplicationResource) {
	object := policies.TemplateObject(resource.Spec.Template)
	if object == nil || !h.needsEvaluation() {
		return
	}
	app, selector := h.applicationOf(resource)
	s := sentObject{object: object, path: "spec.template", isNew: true}
	if old != nil {
		oldApp, _ := h.applicationOf(old)
		s.isNew = oldApp != app
		s.old = policies.TemplateObject(old.Spec.Template)
		if !s.isNew && s.old != nil && equality.Semantic.DeepEqual(object.Object, s.old.Object) {
			return
		}
	}
	h.items = []dryRunItem{{resource: resource}}
	h.evaluateScheduling(app, []sentObject{s}, selector)
}

// applicationOf returns the application of a resource with its target, and the selector
// of targets.
func (h *review) applicationOf(resource *v1alpha1.KubernetesApplicationResource) (input.Application, *metav1.LabelSelector) {
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

// previewResource previews the placement of a resource, or of its application. Another
// object that controls the resource sets its target.
func (h *review) previewResource(resp *admission.Response, resource *v1alpha1.KubernetesApplicationResource) {
	name, member := resource.Labels[v1alpha1.ApplicationLabel]
	if !member {
		if metav1.GetControllerOf(resource) == nil {
			candidates := h.candidates("")
			q, err := candidates.ForResource(resource, "")
			h.previewPlacement(resp, q, err)
		}
		return
	}
	app := h.lookup.application(name)
	if app == nil {
		if h.lookup.err == nil {
			*resp = unschedulable(*resp, fmt.Sprintf("the label %s names KubernetesApplication %s, which does not exist in namespace %s", v1alpha1.ApplicationLabel, name, h.Namespace))
		}
		return
	}
	candidates := h.candidates(name)
	candidates.Resources = append(slices.DeleteFunc(candidates.Resources, func(r v1alpha1.KubernetesApplicationResource) bool { return r.Name == resource.Name }), *resource)
	q, err := candidates.ForApplication(app, "")
	h.previewPlacement(resp, q, err)
}
