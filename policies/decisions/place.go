package decisions

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/portico-io/portico/api/policy/v1alpha1"
	"github.com/portico-io/portico/api/workload/v1alpha1"
	"github.com/portico-io/portico/policies/engine"
	"github.com/portico-io/portico/policies/input"
)

// AuditOperation is input.request.operation when nobody asks for anything, and
// what exists is looked over: before a controller acts on it, or in an audit.
const AuditOperation = "AUDIT"

// Place is where objects of one application could run.
type Place struct {
	// Namespace of the hub they are in.
	Namespace *corev1.Namespace
	// Application they belong to. Once it has a target they run there, and
	// policies are asked about that target alone.
	Application input.Application
	// Selector of targets that the application asks for.
	Selector labels.Selector
	// Targets of the namespace.
	Targets []v1alpha1.KubernetesTarget
	// Placed counts, by target, the resources that are on it already.
	Placed map[string]int
}

// Scheduling asks whether an object may run, and where.
func (p Place) Scheduling(request input.Request, object, old *unstructured.Unstructured) engine.Question {
	request.Namespace = p.Namespace.Name // not the one on the target, which a template names
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

// Publish asks whether a target may be published. others are all targets there
// are, of which those of the same namespace, or of the same managed cluster,
// count.
func Publish(request input.Request, target, old *v1alpha1.KubernetesTarget, namespace *corev1.Namespace, others []v1alpha1.KubernetesTarget) engine.Question {
	q := engine.Question{Type: policyv1alpha1.Publish, Question: input.Question{
		Request: request, Target: target, OldTarget: old, Namespace: namespace,
	}}
	for i := range others {
		other := &others[i]
		itself := other.Namespace == target.Namespace && other.Name == target.Name
		if !itself && (other.Namespace == target.Namespace || sameCluster(other, target)) {
			q.Existing = append(q.Existing, other)
		}
	}
	return q
}

// sameCluster compares managed clusters. Of clusters behind a Secret that
// somebody made nothing is known before they are connected.
func sameCluster(a, b *v1alpha1.KubernetesTarget) bool {
	return a.Spec.ClusterRef != nil && b.Spec.ClusterRef != nil && *a.Spec.ClusterRef == *b.Spec.ClusterRef
}

// Namespace is what policies see of a namespace of which only the metadata is
// kept.
func Namespace(name string, meta metav1.Object) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: meta.GetLabels(), Annotations: meta.GetAnnotations()}}
}

func pointers(targets []v1alpha1.KubernetesTarget) []*v1alpha1.KubernetesTarget {
	out := make([]*v1alpha1.KubernetesTarget, len(targets))
	for i := range targets {
		out[i] = &targets[i]
	}
	return out
}
