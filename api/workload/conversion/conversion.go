// Package conversion turns a KubernetesApplication of one version into the other,
// with no loss either way: they differ in what they call a target, and in nothing
// else. v1alpha2 is the one that is stored, and that the rest of Portico knows.
package conversion

import (
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha2"
)

// Up writes an application of v1alpha1 as v1alpha2. The two share nothing.
func Up(from *v1alpha1.KubernetesApplication, to *v1alpha2.KubernetesApplication) {
	from = from.DeepCopy()
	to.ObjectMeta = from.ObjectMeta
	to.Spec = v1alpha2.KubernetesApplicationSpec{
		ResourceSelector: from.Spec.ResourceSelector,
		TargetSelector:   from.Spec.ClusterSelector,
		TargetRef:        from.Spec.ClusterRef,
		Tolerations:      from.Spec.Tolerations,
	}
	if from.Spec.ResourceTemplates != nil {
		to.Spec.ResourceTemplates = make([]v1alpha2.ResourceTemplate, len(from.Spec.ResourceTemplates))
	}
	for i, template := range from.Spec.ResourceTemplates {
		to.Spec.ResourceTemplates[i] = v1alpha2.ResourceTemplate{
			Metadata: v1alpha2.TemplateMeta(template.Metadata),
			Spec:     v1alpha2.ResourceTemplateSpec(template.Spec),
		}
	}
	to.Status = v1alpha2.KubernetesApplicationStatus(from.Status)
}

// Down writes an application of v1alpha2 as v1alpha1. The two share nothing.
func Down(from *v1alpha2.KubernetesApplication, to *v1alpha1.KubernetesApplication) {
	from = from.DeepCopy()
	to.ObjectMeta = from.ObjectMeta
	to.Spec = v1alpha1.KubernetesApplicationSpec{
		ResourceSelector: from.Spec.ResourceSelector,
		ClusterSelector:  from.Spec.TargetSelector,
		ClusterRef:       from.Spec.TargetRef,
		Tolerations:      from.Spec.Tolerations,
	}
	if from.Spec.ResourceTemplates != nil {
		to.Spec.ResourceTemplates = make([]v1alpha1.ResourceTemplate, len(from.Spec.ResourceTemplates))
	}
	for i, template := range from.Spec.ResourceTemplates {
		to.Spec.ResourceTemplates[i] = v1alpha1.ResourceTemplate{
			Metadata: v1alpha1.TemplateMeta(template.Metadata),
			Spec:     v1alpha1.ResourceTemplateSpec(template.Spec),
		}
	}
	to.Status = v1alpha1.KubernetesApplicationStatus(from.Status)
}
