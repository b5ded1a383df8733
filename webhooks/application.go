package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/input"
)

func (h *review) validateApplication() (field.ErrorList, error) {
	_, _, errs, err := validateObject(h, validation[*v1alpha2.KubernetesApplication]{
		fields: policies.ValidateApplication, allowed: h.checkApplicationAllowed,
		rights: policies.RightsForApplication, evaluate: h.evaluateApplication,
	})
	return errs, err
}

// checkApplicationAllowed validates an application against spec.allow of its target. For
// an application without a target it sets up the preview.
func (h *review) checkApplicationAllowed(app, old *v1alpha2.KubernetesApplication) field.ErrorList {
	if errs := policies.ValidateApplicationTarget(app, old); len(errs) > 0 {
		return errs
	}
	members := func() []v1alpha1.KubernetesApplicationResource { return h.lookup.members(app.Name) }
	if errs := policies.ValidateApplicationMove(app, old, members); len(errs) > 0 {
		return errs
	}
	if app.Spec.TargetRef != nil {
		return h.options.AllowDefaults.ValidateApplication(app, old, h.lookup.target(app.Spec.TargetRef.Name), h.isClusterScoped)
	}
	if app.DeletionTimestamp == nil {
		h.preview = func(resp *admission.Response) {
			candidates := h.candidates(app.Name)
			q, err := candidates.ForApplication(app, "")
			h.previewPlacement(resp, q, err)
		}
	}
	return nil
}

// evaluateApplication evaluates the policies for the templates that are new or changed.
// When the user sets or changes the target, it evaluates all templates.
func (h *review) evaluateApplication(app, old *v1alpha2.KubernetesApplication) {
	if !h.needsEvaluation() {
		return
	}
	target, oldTarget := targetName(app.Spec.TargetRef), ""
	oldTemplates := map[string]*unstructured.Unstructured{}
	if old != nil {
		oldTarget = targetName(old.Spec.TargetRef)
		for _, t := range old.Spec.ResourceTemplates {
			oldTemplates[t.Metadata.Name] = policies.TemplateObject(t.Spec.Template)
		}
	}
	var objects []sentObject
	for i, t := range app.Spec.ResourceTemplates {
		object, oldObject := policies.TemplateObject(t.Spec.Template), oldTemplates[t.Metadata.Name]
		h.templates = append(h.templates, object)
		if object == nil || oldObject != nil && target == oldTarget && equality.Semantic.DeepEqual(object.Object, oldObject.Object) {
			continue
		}
		path := fmt.Sprintf("spec.resourceTemplates[%d].spec.template", i)
		objects = append(objects, sentObject{object: object, old: oldObject, isNew: oldObject == nil || target != oldTarget, path: path})
		h.items = append(h.items, dryRunItem{resource: templatedResource(app, t), path: path})
	}
	h.evaluateScheduling(input.Application{Name: app.Name, Target: target}, objects, app.Spec.TargetSelector)
}

// templatedResource returns the resource that the controller makes from a template.
func templatedResource(app *v1alpha2.KubernetesApplication, template v1alpha2.ResourceTemplate) *v1alpha1.KubernetesApplicationResource {
	return &v1alpha1.KubernetesApplicationResource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: app.Namespace, Name: template.Metadata.Name,
			Labels: template.Metadata.Labels, Annotations: template.Metadata.Annotations,
		},
		Spec: v1alpha1.KubernetesApplicationResourceSpec{Template: template.Spec.Template, Secrets: template.Spec.Secrets},
	}
}
