package decisions

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// AuditOperation is input.request.operation when there is no admission request: before a
// controller acts on an object, or in an audit.
const AuditOperation = "AUDIT"

// SchedulingContext describes the targets for the objects of one application.
type SchedulingContext struct {
	// Namespace is the namespace of the objects on the hub.
	Namespace *corev1.Namespace
	// Application of the objects. If it has a target, policies see only this target.
	Application input.Application
	// Selector is the target selector of the application.
	Selector labels.Selector
	// Targets of the namespace.
	Targets []v1alpha1.KubernetesTarget
	// Placed is the number of resources on each target.
	Placed map[string]int
}

// Question returns the question whether an object may run, and where.
func (p SchedulingContext) Question(request input.Request, object, old *unstructured.Unstructured) engine.Question {
	request.Namespace = p.Namespace.Name // a template may name another namespace, which is that on the target
	q := engine.Question{Type: policyv1alpha1.Scheduling, Question: input.Question{
		Request: request, Object: object, OldObject: old,
		Namespace: p.Namespace, Application: p.Application, Placed: p.Placed,
	}}
	if at := p.Application.Target; at != "" {
		for i := range p.Targets {
			if p.Targets[i].Name == at {
				q.Targets = append(q.Targets, &p.Targets[i])
			}
		}
		return q
	}
	q.Selector = p.Selector
	q.Targets = pointers(p.Targets)
	return q
}

// ListRelatedTargets lists the targets that publish policies see beside a target. list
// returns the targets with a key of policies.RelatedTargetIndex.
func ListRelatedTargets(target *v1alpha1.KubernetesTarget, list func(key string) ([]v1alpha1.KubernetesTarget, error)) ([]v1alpha1.KubernetesTarget, error) {
	var out []v1alpha1.KubernetesTarget
	for _, key := range policies.RelatedTargetKeys(target) {
		found, err := list(key)
		if err != nil {
			return nil, fmt.Errorf("listing targets: %w", err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// PublishQuestion returns the question whether a target may be published. Policies see
// every related target once.
func PublishQuestion(request input.Request, target, old *v1alpha1.KubernetesTarget, namespace *corev1.Namespace, others []v1alpha1.KubernetesTarget) engine.Question {
	q := engine.Question{Type: policyv1alpha1.Publish, Question: input.Question{
		Request: request, Target: target, OldTarget: old, Namespace: namespace,
	}}
	keys := sets.New(policies.RelatedTargetKeys(target)...)
	added := sets.New(types.NamespacedName{Namespace: target.Namespace, Name: target.Name})
	for i := range others {
		name := types.NamespacedName{Namespace: others[i].Namespace, Name: others[i].Name}
		if !added.Has(name) && keys.HasAny(policies.RelatedTargetKeys(&others[i])...) {
			added.Insert(name)
			q.Existing = append(q.Existing, &others[i])
		}
	}
	return q
}

// NamespaceFromMetadata returns a namespace for policies, which see its metadata alone.
func NamespaceFromMetadata(name string, meta metav1.Object) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: meta.GetLabels(), Annotations: meta.GetAnnotations()}}
}

func pointers(targets []v1alpha1.KubernetesTarget) []*v1alpha1.KubernetesTarget {
	out := make([]*v1alpha1.KubernetesTarget, len(targets))
	for i := range targets {
		out[i] = &targets[i]
	}
	return out
}
